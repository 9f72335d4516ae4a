"""What each subject of a release is released under: its setting, where it begins, and what single steps have instead.

Proof: docs/proofs/choices.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.accounting.budget import quoted
from dphmm.errors import InvalidInput
from dphmm.policy.graph import PolicyGraph
from dphmm.session.choice import CHOICES, StepChoice
from dphmm.session.setting import Setting

#: {number of a step in tables, or of its time bin since 1970: what is chosen for it, by name}.
StepChoices = Mapping[int, Mapping[str, Any]]


class Subjects:
    """The settings of the subjects of a release, and what was chosen for its steps. All of it is public.

    ``setting`` is everybody's but of those whom ``initials`` {subject: state or N probabilities} lets begin elsewhere.
    Raises InvalidInput for choices that are none, and for those that the setting does not let vary.
    """

    def __init__(
        self, setting: Setting, initials: Mapping[str, Any] | None = None, step_choices: StepChoices | None = None
    ) -> None:
        self.setting = setting
        self.initials = dict(initials or {})
        self.given = checked_steps(step_choices or {})
        self.chosen = {step: _checked(setting, step, each) for step, each in self.given.items()}
        self._begun: dict[bytes, Setting] = {}
        self._different = _different(self.chosen.values())

    def of(self, subject: str) -> Setting:
        """The setting of a subject. Raises InvalidInput naming the subject."""
        initial = self.initials.get(subject)
        if initial is None:
            return self.setting
        # A name may look like a number: the state "3" is not state 3.
        key = repr(initial).encode() if np.ndim(initial) == 0 else np.asarray(initial, dtype=np.float64).tobytes()
        if key not in self._begun:
            self._begun[key] = self.setting.beginning(initial, f"initials of {quoted(subject)}")
        return self._begun[key]

    @property
    def policies(self) -> list[PolicyGraph]:
        """The policies that a step may have, the setting's first."""
        found = [one.policy for one in self._different if one is not None and one.policy is not None]
        return list({policy.digest: policy for policy in (self.setting.policy, *found)}.values())

    @property
    def epsilons(self) -> tuple[Fraction, Fraction]:
        """The smallest and the largest epsilon that a step may have."""
        found = [self._epsilon_of(one) for one in self._different or (None,)]
        return min(found), max(found)

    def grouped(self) -> list[tuple[StepChoice, list[int]]]:
        """Each choice that is not the setting's own with the numbers of its steps, in order of the first."""
        steps: dict[str, list[int]] = {}
        for step in sorted(self.chosen):
            one = self.chosen[step]
            if one is not None:
                steps.setdefault(one.key, []).append(step)
        choices = {one.key: one for one in self._different if one is not None}
        return [(choices[key], found) for key, found in steps.items()]

    @property
    def initials_digest(self) -> str:
        """SHA-256 (hex) of who begins where, as JSON: [[subject, SHA-256 of the probabilities], ...] by name."""
        told = [(subject, self.of(subject).began) for subject in sorted(self.initials)]
        pairs = [(subject, began[1]) for subject, began in told if began is not None]
        return hashlib.sha256(json.dumps(pairs, separators=(",", ":")).encode()).hexdigest()

    def may_have(self, epsilon: float | None = None, number: int | None = None) -> Sequence[StepChoice | None]:
        """What a published row may have been released under: its plan's hash tells which.

        ``number`` is that of its step in tables, where it is known. ``epsilon``, the row's, leaves others out; that of
        a public constant is 0, which says nothing.
        """
        if number is not None:
            return (self.chosen.get(number),)
        if not epsilon:
            return self._different or (None,)
        found = [one for one in self._different if float(self._epsilon_of(one)) == epsilon]
        return found or (None,)

    def epsilon_at(self, step: int) -> Fraction:
        """The epsilon of a release, by the number of its step in tables."""
        return self._epsilon_of(self.chosen.get(step))

    def _epsilon_of(self, choice: StepChoice | None) -> Fraction:
        own = self.setting.options.epsilon
        return own if choice is None or choice.epsilon is None else choice.epsilon


def _checked(setting: Setting, step: int, each: Mapping[str, Any]) -> StepChoice | None:
    try:
        return StepChoice.checked(setting, **each)
    except InvalidInput as error:
        came, _, expected = str(error).removeprefix(f"{error.field}: got ").rpartition("; expected ")
        raise InvalidInput(f"step_choices, step {step}, {error.field}", came, expected) from None


def names_chosen(step_choices: StepChoices) -> list[str]:
    """The names of what is chosen for some step."""
    return sorted({name for each in step_choices.values() for name in each})


def checked_steps(given: StepChoices) -> dict[int, dict[str, Any]]:
    """What is chosen at steps, by number. Raises InvalidInput for steps that are no numbers and unknown choices."""
    for step, chosen in given.items():
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise InvalidInput(
                "step_choices", str(step), "numbers of steps, as in the table, or of time bins since 1970"
            )
        for name in chosen:
            if name not in CHOICES:
                raise InvalidInput(f"step_choices of step {step}", name, f"one of {', '.join(CHOICES)}")
    return {int(step): dict(chosen) for step, chosen in given.items()}


def _different(chosen: Any) -> list[StepChoice | None]:
    """The setting's own, and each other choice once; nothing where there is no other."""
    found: dict[Any, StepChoice | None] = {}
    for one in chosen:
        if one is not None:
            found.setdefault(one.key, one)
    return [None, *found.values()] if found else []
