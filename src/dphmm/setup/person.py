"""One person who is asked as time goes by: a row comes, and its noisy answer goes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.storage.trajectories import load_trajectories

if TYPE_CHECKING:
    from dphmm.release.batch import Batch


@dataclass(frozen=True, eq=False)
class Person:
    """A person of a ledger, who is asked by a plan: `Plan.person` opens or continues one."""

    name: str
    batch: Batch

    def release(
        self, *, lat: float | None = None, lon: float | None = None, state: str | None = None, at: Any = None
    ) -> Any:
        """The noisy answer of one row, stored in the ledger first; without z where the plan asks nothing then.

        ``at``: a time with a zone, where the model has a time step. A row of a step that has an answer gets that again.

        Raises
        ------
        InvalidInput : a row that cannot be read, or one before the last. BudgetExceeded : as the ledger's limits say.
        """
        import pandas as pd

        row = {"user": self.name, "t": at, "lat": lat, "lon": lon, "state": state}
        table = pd.DataFrame([{name: value for name, value in row.items() if value is not None}])
        loaded = load_trajectories(table, space=self.batch.setting.space, spelling=self.batch.ledger.spelling)
        if len(loaded.rejected):
            raise InvalidInput("row", "one that cannot be read", "a place or a state, and a time with a zone")
        (answered,) = [answer for part in self.batch.run(loaded.trajectories, resume=True) for answer in part]
        return answered

    def __repr__(self) -> str:
        spent = self.batch.ledger.spent(self.name)
        return f"Person: {self.name!r}, epsilon {spent.epsilon} spent"
