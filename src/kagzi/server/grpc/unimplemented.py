"""The methods of the contract that this server does not have yet, by the capability that brings them."""

KEYS = "API keys"
LATER = "a later version"

UNIMPLEMENTED: dict[str, str] = {
    **dict.fromkeys(
        (
            "/kagzi.v1.KeyService/CreateKey",
            "/kagzi.v1.KeyService/ListKeys",
            "/kagzi.v1.KeyService/RotateKey",
            "/kagzi.v1.KeyService/RevokeKey",
        ),
        KEYS,
    ),
}


def sentence(path: str) -> str:
    method, release = path.rpartition("/")[2], UNIMPLEMENTED.get(path, LATER)
    return f"{method} is not implemented by this server yet. It comes with: {release}."
