"""Train the trees of `compact.summaries.needs` on recorded sessions: `python -m scripts.train_needs FILE...`.

Each FILE has one session a line, as JSON with `id`, `license` and `messages` in the form of chat completions, plain or gzipped.
Only sessions under the MIT or Apache licence are used. Every session is cut at several places. A name in what lies before the
cut, outside of its newest part, is positive if the agent writes it after the cut before anything shows it again.

Trees are fitted on sessions whose id hashes even (the first byte of its SHA-256) and written to `needs.json`. Printed is the area
under the ROC curve, as a mean over the sessions of the other half: in all, by source, by source for trees that never saw it,
and without each group of features. `pip install --group train` installs what this needs and compact itself does not.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from compact.messages import Message, dialects
from compact.messages.excerpts import split_words
from compact.summaries import needs
from compact.summaries.spoken import spoken_in

CUTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
RECENT_SHARE = 0.15
"""Words in the newest part are kept by any method, so nothing is learned from them."""
LICENCES = ("MIT", "Apache-2.0")
OUTPUT = Path(__file__).resolve().parents[1] / "src" / "compact" / "summaries" / "needs.json"
GROUPS = {
    "shape": slice(0, 6),
    "how often": slice(6, 12),
    "who said it": slice(12, 16),
    "age": slice(16, 18),
    "use by the agent": slice(18, 21),
    "time in the session": slice(21, 23),
    "sizes": slice(23, 26),
    "fields": slice(26, 28),
}


def rows_of(messages: Sequence[Message]) -> Iterator[tuple[list[float], bool]]:
    """The features of every name at every cut, and whether it was needed."""
    for cut in CUTS:
        place = int(len(messages) * cut)
        while place < len(messages) and messages[place].results:
            place += 1
        before, after = messages[:place], messages[place:]
        if len(before) < 4 or not after:
            continue
        reading = needs.read(list(spoken_in(before)))
        wanted = _needed(after)
        recent = {
            word
            for age, text in zip(reading.ages, reading.texts, strict=True)
            if age <= RECENT_SHARE * reading.total
            for word in split_words(text.text)
        }
        for word, shape in needs.candidates(reading):
            if word not in recent and shape not in needs.PLAIN_SHAPES:
                yield needs.features_of(word, reading), word in wanted


def _needed(after: Sequence[Message]) -> set[str]:
    shown: set[str] = set()
    found: set[str] = set()
    for message in after:
        words = {word for text in spoken_in([message]) for word in split_words(text.text)}
        if message.role == "assistant":
            found |= words - shown
        shown |= words
    return found


def read_sessions(paths: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every session that may be used, with the name of its file."""
    for path in paths:
        data = path.read_bytes()
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
            session = json.loads(line)
            if session.get("license") in LICENCES:
                yield path.name.split(".")[0], session


class Rows:
    """The rows of all sessions, as arrays."""

    def __init__(self, paths: Sequence[Path]) -> None:
        features, labels, sessions, sources, odd = [], [], [], [], []
        for number, (source, session) in enumerate(read_sessions(paths)):
            _, messages = dialects.read(session["messages"])
            is_odd = hashlib.sha256(session["id"].encode()).digest()[0] % 2
            for row, label in rows_of(messages):
                features.append(row)
                labels.append(label)
                sessions.append(number)
                sources.append(source)
                odd.append(is_odd)
        self.features, self.labels = np.array(features, dtype=np.float32), np.array(labels)
        self.sessions, self.sources = np.array(sessions), np.array(sources)
        self.odd = np.array(odd) == 1
        _, places, counts = np.unique(self.sessions, return_inverse=True, return_counts=True)
        self.weights = 300 / counts[places]  # a session counts once, however long it is

    def fit(self, chosen: Any, features: Any = None) -> Any:
        """The trees for some rows."""
        learner = HistGradientBoostingClassifier(
            max_iter=40,
            learning_rate=0.18,
            max_leaf_nodes=8,
            min_samples_leaf=200,
            l2_regularization=5,
            early_stopping=False,
            random_state=0,
        )
        given = self.features if features is None else features
        return learner.fit(given[chosen], self.labels[chosen], sample_weight=self.weights[chosen])

    def area(self, trees: Any, chosen: Any, features: Any = None) -> float:
        """The area under the curve, as a mean over sessions."""
        scores = trees.decision_function(self.features if features is None else features)
        areas = []
        for session in np.unique(self.sessions[chosen]):
            there = chosen & (self.sessions == session)
            if 0 < self.labels[there].sum() < there.sum():
                areas.append(roc_auc_score(self.labels[there], scores[there]))
        return float(np.mean(areas)) if areas else float("nan")


def tree_of(nodes: Any, place: int = 0) -> Any:
    """A tree as `needs.json` has it."""
    node = nodes[place]
    if node["is_leaf"]:
        return round(float(node["value"]), 4)
    name, threshold = needs.FEATURES[node["feature_idx"]], float(f"{node['num_threshold']:.5g}")
    return [name, threshold, tree_of(nodes, node["left"]), tree_of(nodes, node["right"])]


def main() -> None:
    """Train, print what was learned, and write the trees."""
    asked = argparse.ArgumentParser(prog="python -m scripts.train_needs", description=__doc__)
    asked.add_argument("files", nargs="+", type=Path)
    asked.add_argument("--dry-run", action="store_true", help="print, and write nothing")
    given = asked.parse_args()

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    rows = Rows(given.files)
    even = ~rows.odd
    say(f"{len(rows.labels):,} names at cuts, {rows.labels.mean():.3f} of them needed; {even.sum():,} even")
    trained = rows.fit(even)
    if not given.dry_run:
        data = {
            "about": "Trees of compact.summaries.needs, by scripts/train_needs.py: [feature, threshold, up to it, above it].",
            "trained_on": f"{len(np.unique(rows.sessions[even]))} sessions under the MIT and Apache licences whose id hashes even",
            "start": round(float(trained._baseline_prediction[0][0]), 4),
            "trees": [tree_of(step[0].nodes) for step in trained._predictors],
        }
        OUTPUT.write_text(json.dumps(data, separators=(",", ":")) + "\n", encoding="utf-8")
    say(f"odd half: {rows.area(trained, rows.odd):.3f}")
    for name in sorted(set(rows.sources)):
        there = rows.sources == name
        unseen = rows.fit(even & ~there)
        seen, never = rows.area(trained, rows.odd & there), rows.area(unseen, rows.odd & there)
        say(f"  {name}: {seen:.3f}; never saw the source: {never:.3f}")
    for name, columns in GROUPS.items():
        less = rows.features.copy()
        less[:, columns] = 0
        say(f"  without {name}: {rows.area(rows.fit(even, less), rows.odd, less):.3f}")


if __name__ == "__main__":
    main()
