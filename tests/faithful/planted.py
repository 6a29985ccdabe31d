"""Secrets to plant: made when asked for, so that no file of ours looks as if it held one."""

from __future__ import annotations

import random
import string

ALNUM = string.ascii_letters + string.digits
_random = random.Random(24)


def _some(count: int, of: str = ALNUM) -> str:
    return "".join(_random.choice(of) for _ in range(count))


def _jwt() -> str:
    return ".".join(("eyJ" + _some(20), "eyJ" + _some(40), _some(43)))


def _pem(kind: str) -> str:
    lines = "\\n".join(_some(64) for _ in range(3))
    return f"-----BEGIN {kind}PRIVATE KEY-----\\n{lines}\\n-----END {kind}PRIVATE KEY-----"


def shaped() -> dict[str, tuple[str, str]]:
    """What it is -> (the text that holds it, the secret itself)."""
    plain = {
        "AWS access key": "AK" + "IA" + _some(16, string.ascii_uppercase + string.digits),
        "AWS temporary key": "AS" + "IA" + _some(16, string.ascii_uppercase + string.digits),
        "GitHub token": "gh" + "p_" + _some(36),
        "GitHub server token": "gh" + "s_" + _some(36),
        "GitHub fine-grained token": "github" + "_pat_" + _some(22) + "_" + _some(59),
        "GitLab token": "gl" + "pat-" + _some(20),
        "Hugging Face token": "h" + "f_" + _some(34, string.ascii_letters),
        "OpenAI key": "s" + "k-" + _some(48),
        "OpenAI project key": "s" + "k-proj-" + _some(40),
        "Anthropic key": "s" + "k-ant-api03-" + _some(80),
        "Slack bot token": "xo" + "xb-" + _some(11, string.digits) + "-" + _some(24),
        "Slack user token": "xo" + "xp-" + _some(30),
        "Google key": "AI" + "za" + _some(35),
        "Google access token": "ya" + "29." + _some(60),
        "Stripe key": "s" + "k_live_" + _some(24),
        "Stripe test key": "r" + "k_test_" + _some(24),
        "SendGrid key": "S" + "G." + _some(22) + "." + _some(43),
        "npm token": "np" + "m_" + _some(36),
        "PyPI token": "py" + "pi-AgEI" + _some(80),
        "Telegram token": _some(9, string.digits) + ":A" + "A" + _some(33),
        "JWT": _jwt(),
    }
    found = {name: (secret, secret) for name, secret in plain.items()}
    for name, before, length, after in (
        ("bearer token", "Authorization: Bearer ", 40, ""),
        ("basic credentials", "authorization: basic ", 24, "=="),
        ("password in a URL", "postgres://admin:", 14, "@db.example/x"),
        ("token in a URL", "https://oauth2:", 20, "@git.example/x.git"),
        ("Slack hook", "https://hooks.slack.com/services/", 40, ""),
        ("Azure key", "AccountName=a;AccountKey=", 60, "==;x"),
        ("Azure signature", "https://x.example/?sv=1&sig=", 40, "&e=1"),
    ):
        secret = _some(length)
        found[name] = (f"{before}{secret}{after}", secret)
    for kind in ("", "RSA ", "EC ", "OPENSSH "):
        text = _pem(kind)
        found[f"{kind}private key"] = (text, text.split("\\n")[1])
    return found


def named() -> dict[str, tuple[str, str]]:
    """Literals that only their names give away: (a line of source, the secret)."""
    found = {}
    for name in (
        "api_key",
        "DB_PASSWORD",
        "client_secret",
        "access_token",
        "passphrase",
        "wandb_key",
        "private_key",
    ):
        secret = "Z" + _some(11)
        found[name] = (f"{name} = '{secret}'", secret)
    return found


def options() -> dict[str, tuple[list[str], str]]:
    """Words of a command line, and the secret in them."""
    found = {}
    for name in ("--api-key", "--token", "--password", "--hf-token", "--client-secret", "--wandb-key"):
        secret = "Q" + _some(11)
        found[f"{name}=X"] = ([f"{name}={secret}"], secret)
        other = "Q" + _some(11)
        found[f"{name} X"] = ([name, other], other)
    return found
