"""Stands in for torch in ``make quick``, where no test needs it: nobody imports it without being told."""

raise RuntimeError(
    "this test needs torch: mark it with @pytest.mark.torch, so that `make quick` leaves it out"
)
