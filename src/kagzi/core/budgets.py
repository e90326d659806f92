"""Bytes that several parties keep waiting, bounded for each and for all of them together."""


class ByteBudget:
    """Each party may keep up to `each_bytes`. Once all together keep `total_bytes`, nobody may go beyond `share_bytes`: one that
    fills the total takes from others what they could have had, and never their share."""

    __slots__ = ("_each_bytes", "_share_bytes", "_total_bytes", "used_bytes")

    def __init__(self, each_bytes: int, total_bytes: int, share_bytes: int) -> None:
        self._each_bytes = each_bytes
        self._total_bytes = total_bytes
        self._share_bytes = share_bytes
        self.used_bytes = 0  # by all

    def is_over(self, own_bytes: int) -> bool:
        """Whether a party that keeps so much has to wait before it may keep more."""
        if own_bytes >= self._each_bytes:
            return True
        return self.used_bytes >= self._total_bytes and own_bytes >= self._share_bytes
