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
    return f"{path.rpartition('/')[2]} is not implemented by this server yet. It comes with: {UNIMPLEMENTED.get(path, LATER)}."
