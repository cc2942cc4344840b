"""The cache that fills while it is read."""

import numpy as np

from myxtts.data.batches.filling import CacheFiller, batches_in_memory
from myxtts.data.batches.plan import BatchPlan
from myxtts.data.batches.training_data import TrainingData
from myxtts.data.store.view import StoreView
from tests.data.conftest import TRAINED, configured


def test_after_the_last_call_expected_all_is_stored_and_others_may_write(corpus):
    split = TrainingData(configured(corpus, preprocessing_mode="auto")).train
    store = split.location.features
    asked = (split.utterances, split.location.settings, store, 10**9, 64)
    filler = CacheFiller(*asked, expected=TRAINED)
    for position in range(TRAINED):
        assert store.is_held_here and len(StoreView(store)) == 0
        assert filler(position)["mel"].size
    assert not store.is_held_here and len(StoreView(store)) == TRAINED
    filler.close()
    assert filler.stored == TRAINED


def test_computed_batches_are_bounded_by_the_largest_of_them(corpus):
    settings = TrainingData(configured(corpus, preprocessing_mode="auto")).train.location.settings
    # 80 mels of 2 bytes, an energy and a pitch of 4 each: 168 bytes a frame, 3 x 64 of them.
    plan = BatchPlan(np.arange(5), np.array([0, 2, 5]), np.array([32, 64]), np.array([8, 8]))
    assert batches_in_memory(plan, settings, 10 * 3 * 64 * 168) == 10
    assert batches_in_memory(plan, settings, 10 * 3 * 64 * 168 - 1) == 9
