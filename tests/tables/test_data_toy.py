"""The toy stream: the published one, seed by seed."""

import numpy as np
import pytest

from driftgp.data import toy_signal, toy_stream, toy_streams, toy_times
from tests.data_files import published_run


@pytest.fixture(scope="module", params=range(5))
def published(request):
    return request.param, published_run(request.param)


def test_seed_k_is_the_published_stream_of_seed_k(published):
    seed, reference = published
    stream = toy_stream(seed)
    np.testing.assert_array_equal(stream.X[:, 0], reference["X"])
    np.testing.assert_allclose(stream.y, reference["y"], rtol=0, atol=2.4e-7)  # a unit in single precision's last place
    np.testing.assert_array_equal(toy_signal(), reference["f_clean"])


def test_shape_warm_up_and_the_time_that_occurs_twice():
    stream = toy_stream(7)
    assert stream.X.shape == (501, 1)
    assert stream.y.shape == (501,)
    assert (stream.warmup, stream.online) == (100, 401)
    assert stream.X[299, 0] == stream.X[300, 0] == 3.0
    assert np.abs(stream.X[:, 0] - toy_times()).max() < 5e-7


def test_the_signal_changes_amplitude_then_frequency():
    t, f = toy_times(), toy_signal()
    np.testing.assert_allclose(f[:300], (0.5 + 0.5 * t[:300]) * np.sin(4 * t[:300]), atol=1e-14)
    np.testing.assert_allclose(f[300:], 2 * np.sin(8 * t[300:]), atol=1e-14)


def test_a_batch_of_seeds_is_its_streams_one_by_one():
    X, Y = toy_streams([3, 0, 11])
    for row, seed in zip(Y, (3, 0, 11), strict=True):
        np.testing.assert_array_equal(row, toy_stream(seed).y)
        np.testing.assert_array_equal(X, toy_stream(seed).X)


def test_noise_is_white_gaussian_of_variance_004():
    _, Y = toy_streams(range(400))
    noise = (Y - toy_signal()).ravel()
    size = noise.size
    assert abs(noise.mean()) < 4 * 0.2 / np.sqrt(size)
    assert abs(noise.var() - 0.04) < 4 * 0.04 * np.sqrt(2 / size)
    assert abs((noise**4).mean() / noise.var() ** 2 - 3) < 4 * np.sqrt(24 / size)
    assert abs((noise[1:] * noise[:-1]).mean()) < 4 * 0.04 / np.sqrt(size)


def test_noise_scales_and_may_be_absent():
    quiet, loud = toy_stream(1, noise=0.0), toy_stream(1, noise=0.4)
    np.testing.assert_allclose(loud.y - quiet.y, 2 * (toy_stream(1).y - quiet.y), atol=1e-15)
    np.testing.assert_allclose(quiet.y, toy_signal(), atol=5e-6)


def test_no_seeds_give_an_empty_batch():
    X, Y = toy_streams([])
    assert X.shape == (501, 1)
    assert Y.shape == (0, 501)


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_out_of_range_is_named(seed):
    with pytest.raises(ValueError, match=f"seed is {seed}"):
        toy_stream(seed)


@pytest.mark.parametrize("noise", [-0.1, float("nan")])
def test_a_negative_noise_is_named(noise):
    with pytest.raises(ValueError, match="noise is"):
        toy_stream(0, noise=noise)
