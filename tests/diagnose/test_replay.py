"""A step played again: by hand, each test a step whose length without the break is plain. Microseconds here."""

from __future__ import annotations

from breakscope.diagnose.replay import LATENCY_NS, Stretch, period, with_waits

LATENCY = LATENCY_NS / 1e3


def us(host: float, device: float = 0, lead: float = 0, wait: float | None = None) -> Stretch:
    return Stretch(host * 1e3, device * 1e3, lead * 1e3, None if wait is None else wait * 1e3)


def length(*step: Stretch) -> float:
    return period(step) / 1e3


def test_without_a_device_the_step_is_what_the_host_does() -> None:
    assert length(us(30), us(40), us(30)) == 100


def test_a_step_that_waits_for_the_host_is_shorter_by_what_the_host_no_longer_does() -> None:
    region, gap = us(100, device=20, lead=50), us(60)
    assert length(region, gap, region) - length(region, region) == 60


def test_a_host_that_is_ahead_of_its_device_may_pause_for_free() -> None:
    region = us(100, device=500, lead=50)
    assert length(region, us(60), region) == length(region, region) == 1000


def test_a_wait_in_a_full_queue_costs_the_time_in_which_the_device_has_nothing_to_do() -> None:
    # After the wait the host needs 30 more for the gap and 50 to the next region's first kernel.
    region = us(100, device=500, lead=50)
    with_break = length(region, us(0, wait=30), region)
    assert with_break - length(region, region) == 80


def test_a_wait_behind_a_short_kernel_costs_the_host_that_wait() -> None:
    region = us(100, device=20, lead=50)
    waiting = length(region, us(10, wait=25), region)
    assert waiting - length(region, us(10), region) == LATENCY + 25 - 10


def test_one_wait_of_two_taken_out_makes_the_other_one_longer() -> None:
    region = us(10, device=500, lead=5)
    both = length(region, us(0, wait=20), region, us(0, wait=20))
    single = length(region, region, us(0, wait=20))
    neither = length(region, region)
    assert (both, single, neither) == (1050, 1025, 1000)


def test_pauses_cost_nothing_as_long_as_the_device_is_not_done() -> None:
    # The host takes 300 with both pauses, the device 320.
    region, gap = us(100, device=160, lead=10), us(50)
    whole = length(region, gap, region, gap)
    one, both = whole - length(region, region, gap), whole - length(region, region)
    assert (one, both) == (0, 0)
    assert whole == 320


def test_waits_are_found_in_measured_times_and_the_step_stays_what_it_was() -> None:
    # The host took 520 between the regions, of which it waited until the device was done, and 30 more.
    measured = [us(100, device=450, lead=50), us(430), us(100, device=20, lead=50), us(20)]
    played = with_waits(measured, [False, True, False, False])
    assert sum(stretch.host for stretch in measured) == 650_000
    assert period(played) == 650_000
    gap = played[1]
    assert gap.wait == 30_000
    assert gap.host == 430_000 - 400_000
