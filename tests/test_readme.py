"""Every command that the README shows runs and prints what is shown, in order, in one fresh folder."""

import re
from pathlib import Path

import pytest

from tests.documents import follow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.bundled
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_commands_of_the_readme_run(tmp_path, shared_commands):
    # tests/proofs/test_cli.py runs `fly-theory prove` over the whole book, each theorem of which is proved there.
    done = list(follow(README, tmp_path, elsewhere=["fly-theory prove"], shared=shared_commands))
    assert len(done) >= 9
    drawn, shown_in_readme = (tmp_path / "rules.png").read_bytes(), (ROOT / "docs" / "rules.png").read_bytes()
    assert drawn == shown_in_readme, "docs/rules.png is stale"


def test_links_of_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
