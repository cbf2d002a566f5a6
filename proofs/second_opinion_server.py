"""Asks cvc5 about SMT-LIB2 texts, one JSON string a line on stdin, and answers one word a line on stdout."""

import json
import sys

import cvc5


def answer(text: str) -> str:
    """What cvc5 says of a text: sat, unsat or unknown."""
    solver = cvc5.Solver(cvc5.TermManager())
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    symbols = parser.getSymbolManager()
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said = command.invoke(solver, symbols).strip() or said
    return said.split()[0]


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(answer(json.loads(line)) + "\n")
        sys.stdout.flush()
