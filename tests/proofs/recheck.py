"""Check certificate files with cvc5 alone: python recheck.py FOLDER prints what is not unsatisfiable, as JSON."""

import json
import sys
from pathlib import Path

import cvc5


def answer(file: Path) -> str:
    """What cvc5 says of one SMT-LIB2 file."""
    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("tlimit-per", "20000")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, file.read_text(), file.name)
    symbols = parser.getSymbolManager()
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, symbols).strip() or said
    return said


def main(folder: Path) -> None:
    """Print the files of a folder that cvc5 does not find unsatisfiable."""
    answers = {str(file): answer(file) for file in sorted(folder.rglob("*.smt2"))}
    report = {"files": len(answers), "not unsat": {file: said for file, said in answers.items() if said != "unsat"}}
    sys.stdout.write(json.dumps({**report, "prover imported": "proofs" in sys.modules}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
