"""The public side of a release in its folder: model, policy, plan and made table, written before anything is drawn.

And the distinct plans of its answers, once these are there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from dphmm.audit.plain_plans import plain_hash, plain_plans
from dphmm.choose.schedule_plan import save_plan
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms.answer_table import is_reference, known_table
from dphmm.policy.graph import PolicyGraph
from dphmm.session.setting import Setting
from dphmm.states.space import StateSpace
from dphmm.storage.inputs import replacing
from dphmm.storage.made_tables import save_table
from dphmm.storage.models import load_model, save_model
from dphmm.storage.policies import load_policy, save_policy
from dphmm.storage.release_folder import INDEX, MADE_TABLE, MODEL, PLAN, PLANS, POLICY, ReleaseFolder

if TYPE_CHECKING:
    from dphmm.choose.schedule_plan import SchedulePlan


class PublicSide(NamedTuple):
    """The public parts of a release, published beside it.

    ``mechanism`` : its name, or the reference of a made table.
    """

    model: MarkovModel
    policy: PolicyGraph
    space: StateSpace
    planned: SchedulePlan | None = None
    mechanism: str = "auto"

    def check_same(self, place: ReleaseFolder) -> None:
        """Raise InvalidInput for a folder that was released under another model or policy.

        One whose making was interrupted may have a part of them.
        """
        if not (place.path / MODEL).exists() or not (place.path / INDEX).exists():
            return
        model, policy = load_model(place.path / MODEL), place.path / POLICY
        if model.digest != self.model.digest:
            raise InvalidInput("folder", f"{place.path}, a release under another model", "a new folder")
        if policy.exists() and load_policy(policy, self.space, model).digest != self.policy.digest:
            raise InvalidInput("folder", f"{place.path}, a release under another policy", "a new folder")

    def save(self, place: ReleaseFolder) -> None:
        """Write what the folder does not have yet, and take it into the index."""
        model, policy, plan, table = (place.path / name for name in (MODEL, POLICY, PLAN, MADE_TABLE))
        if not model.exists():
            # A hash of the owner's rows confirms a guess of them.
            origin = {name: fact for name, fact in self.model.provenance.items() if name != "source_sha256"}
            save_model(self.model.with_origin(origin), model)
        if not policy.exists():
            save_policy(self.policy, policy, self.space, self.model)
        if self.planned is not None and not plan.exists():
            save_plan(self.planned, plan)
        if is_reference(self.mechanism) and not table.exists():
            save_table(known_table(self.mechanism), table)
        place.keep([MODEL, POLICY, PLAN, MADE_TABLE])


def keep_plans(place: ReleaseFolder, setting: Setting, hashes: set[str]) -> None:
    """Write the distinct plans of these ``hashes`` in plain form, and take them into the index.

    None is written where plans hang on answers, and where one of them was made neither in this run nor in one before.
    """
    if not setting.has_public_plans:
        return
    path, planner = place.path / PLANS, setting.planner
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))["plans"]
        known = {plan["hash"]: plan for plan in earlier if plan["hash"] == plain_hash(plan)}
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        # Of an earlier run there are none, or none that can be read.
        known = {}
    document = plain_plans((plan, planner) for plan in planner.made if plan.hash in hashes)
    known |= {plan["hash"]: plan for plan in document["plans"]}
    if known.keys() >= hashes:
        with replacing(path) as temporary:
            document["plans"] = [known[name] for name in sorted(hashes)]
            temporary.write_text(json.dumps(document) + "\n", encoding="utf-8")
        place.keep([PLANS])
