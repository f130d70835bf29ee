"""Every attack of `make attack`, at a small size: the rules of docs/SECURITY.md hold."""

from __future__ import annotations

from random import Random

import pytest

from bench import Figure
from bench.attack import Attack, Trial
from bench.attack.__main__ import FAMILIES, chosen, main, run

SIZE = 20


@pytest.mark.parametrize(
    ("family", "attack"), [pytest.param(*one, id=f"{one[0]}-{one[1].name}") for one in chosen(())]
)
def test_the_rule_holds(family: str, attack: Attack) -> None:
    result = run(attack, seed=7, size=SIZE)
    assert result.passed, (family, result.failures[:5], [str(figure) for figure in result.figures])


def test_names_are_unique_within_a_family() -> None:
    for family, attacks in FAMILIES.items():
        names = [attack.name for attack in attacks]
        assert len(names) == len(set(names)), family


def test_another_seed_makes_other_tries() -> None:
    attack = Attack(
        "draws", "a rule", lambda seed, size: [Trial(str(seed.random()), False) for _ in range(size)]
    )
    assert run(attack, 1, 3).failures == run(attack, 1, 3).failures != run(attack, 2, 3).failures


@pytest.mark.parametrize(
    ("outcomes", "may_fail", "passes"),
    [
        ([Trial("a", True)], 0.0, True),
        ([Trial("a", True), Trial("b", False)], 0.0, False),
        ([Trial("a", True), Trial("b", False)], 0.5, True),
        ([Figure("share", 0.9, "", 0.8, at_least=True)], 0.0, True),
        ([Trial("a", True), Figure("share", 0.7, "", 0.8, at_least=True)], 0.0, False),
        ([], 0.0, False),
    ],
)
def test_an_attack_passes_only_if_it_tried_and_held(
    outcomes: list[Trial | Figure], may_fail: float, passes: bool
) -> None:
    def make(_seed: Random, _size: int) -> list[Trial | Figure]:
        return outcomes

    assert run(Attack("one", "a rule", make, may_fail), 1, 1).passed is passes


def test_an_unknown_family_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "known: origins" in capsys.readouterr().err
