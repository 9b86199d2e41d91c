from frcnn_lite.engine.step_order import StepOrder


def test_every_image_once_before_any_twice():
    steps = list(StepOrder(images=10, batch_size=4, seed=0, first_step=0, last_step=10))
    flat = [index for batch in steps for index in batch]
    assert all(len(batch) == 4 for batch in steps)
    for epoch in range(4):
        assert sorted(flat[epoch * 10 : (epoch + 1) * 10]) == list(range(10))
    assert flat[:10] != flat[10:20] != list(range(10))


def test_an_order_taken_up_in_the_middle_goes_on_as_it_would_have():
    whole = list(StepOrder(10, 3, seed=5, first_step=0, last_step=9))
    assert list(StepOrder(10, 3, seed=5, first_step=4, last_step=9)) == whole[4:]
    assert list(StepOrder(10, 3, seed=6, first_step=0, last_step=9)) != whole


def test_a_batch_may_be_larger_than_the_data_set():
    (batch,) = StepOrder(images=3, batch_size=7, seed=0, first_step=0, last_step=1)
    assert sorted(batch[:3]) == sorted(batch[3:6]) == [0, 1, 2]
