"""From a prompt to the token ids that both models of a pair read."""

from fly_theory.errors import InvalidInput
from gpu.models import Pair
from gpu.prompts import Prompt

__all__ = ["encode"]


def encode(pair: Pair, prompt: Prompt, *, chat: bool, continuation: int, draft_length: int) -> list[int]:
    """The ids of a prompt, with room in both models for a continuation and a draft of these lengths after it.

    Raises
    ------
    InvalidInput
        No chat template for `chat`, a prompt without tokens, with tokens that only one model knows, or too long.
    """
    text, with_special = prompt.text, True
    if chat:
        if not pair.tokenizer.chat_template:
            msg = "chat=True, but the target's tokenizer has no chat template; use chat=False"
            raise InvalidInput(msg)
        message = [{"role": "user", "content": prompt.text}]
        text = pair.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        with_special = False
    ids: list[int] = pair.tokenizer(text, add_special_tokens=with_special)["input_ids"]
    if not ids:
        msg = f"prompt {prompt.id!r} has no token: {prompt.text!r}"
        raise InvalidInput(msg)
    if max(ids) >= pair.common:
        msg = f"prompt {prompt.id!r} has the token id {max(ids)}; both models know only ids below {pair.common}"
        raise InvalidInput(msg)
    needed = len(ids) + continuation + draft_length
    for role, model in (("target", pair.target), ("draft", pair.draft)):
        if model.context_limit is not None and needed > model.context_limit:
            msg = (
                f"prompt {prompt.id!r} has {len(ids)} tokens and needs {needed} with its continuation and the draft; "
                f"the {role} reads {model.context_limit}"
            )
            raise InvalidInput(msg)
    return ids
