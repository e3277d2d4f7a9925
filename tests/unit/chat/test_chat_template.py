"""Chat templates as transformers renders them, in a sandbox, with every failure a refusal."""

import importlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cartoolkit.chat import ChatTemplate, render_grounded, with_context
from cartoolkit.errors import InvalidRequest
from cartoolkit.messages import Message, TextBlock, ToolCall

STEADY = settings(derandomize=True, deadline=None, database=None, max_examples=60)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

LLAMA_2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}"
    "{% endfor %}"
)
LLAMA_3 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%Y") %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""  # noqa: E501 - as it is written in the wild
MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if (tools is not none) and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS]" + tools | tojson + "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] + ', "id": "' + tool_call.id + '"}' + ("" if loop.last else ", ") }}
        {%- endfor %}
        {{- "]" + eos_token }}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool" %}
        {%- if message.tool_call_id is not defined %}
            {{- raise_exception("a tool result needs an id") }}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content|string + ', "call_id": "' + message.tool_call_id + '"}' }}
    {%- endif %}
{%- endfor %}
"""  # noqa: E501
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"
)
QWEN = """{%- if tools %}
    {{- 'tools' }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>system\\nYou are Qwen.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""  # noqa: E501
SMOLLM_3 = """{% for message in messages -%}
    {% if message.role == 'assistant' %}
        {% generation %}
{{ '<|im_start|>assistant\\n' + message.content + '<|im_end|>\\n' }}
        {% endgeneration %}
    {% elif message.role == 'tool' %}
        {% continue %}
    {% else %}
{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {% endif %}
{% endfor %}
"""
JSON = (
    "{{ messages | tojson }}{{ messages | tojson(indent=2) }}"
    "{{ messages[-1] | tojson(separators=(',', ':'), sort_keys=true) }}{{ messages[-1] | tojson(true) }}"
    "{{ documents is none }}{{ tools is none }}"
)
WILD = {
    "Llama 2": LLAMA_2, "Llama 3": LLAMA_3, "Mistral": MISTRAL, "Gemma": GEMMA, "Qwen": QWEN,
    "SmolLM 3": SMOLLM_3, "JSON": JSON,
}  # fmt: skip

USER, ANSWER = (
    Message(role="user", content=" Hi <b> & 'é' 🙂\n"),
    Message(role="assistant", content="Hello. "),
)
SYSTEM = Message(role="system", content='Be "brief".\n')
CALL = ToolCall(id="abc123def", name="look", arguments={"at": "sky <&> é", "n": [1, None, True]})
CALLS = [
    USER,
    Message(role="assistant", tool_calls=[CALL]),
    Message(role="tool", content="blue", tool_call_id="abc123def"),
    Message(role="assistant", content="It is blue."),
    USER,
]
CONVERSATIONS = {
    "one turn": [USER],
    "three turns": [USER, ANSWER, USER],
    "system": [SYSTEM, USER],
    "system and three turns": [SYSTEM, USER, ANSWER, USER],
    "ends with the assistant": [USER, ANSWER],
    "two users": [USER, USER],
    "tool calls": CALLS,
}


def plain(message: Message) -> dict:
    """The message as people write it for transformers."""
    turn = {"role": message.role, "content": message.text()}
    if message.tool_calls:
        turn["tool_calls"] = [
            {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id:
        turn["tool_call_id"] = message.tool_call_id
    return turn


@pytest.fixture(scope="module")
def transformers_tokenizer():
    tokenizers = importlib.import_module("tokenizers")
    transformers = importlib.import_module("transformers")
    empty = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "</s>": 1}, unk_token="<s>"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=empty, **TOKENS)


def by_transformers(tokenizer, source, messages, **settings_):
    """The text, or None where the template raises."""
    from jinja2 import TemplateError

    try:
        return tokenizer.apply_chat_template(
            [plain(m) for m in messages], chat_template=source, tokenize=False, **settings_
        )
    except TemplateError:
        return None


@pytest.mark.parametrize("add_generation_prompt", [True, False])
@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("name", WILD)
def test_templates_of_the_wild_render_and_refuse_as_in_transformers(
    transformers_tokenizer, name, conversation, add_generation_prompt
):
    messages = CONVERSATIONS[conversation]
    expected = by_transformers(
        transformers_tokenizer, WILD[name], messages, add_generation_prompt=add_generation_prompt
    )
    template = ChatTemplate(WILD[name], TOKENS)
    if expected is None:
        with pytest.raises(InvalidRequest, match="chat template refuses this conversation"):
            template.render(messages, add_generation_prompt=add_generation_prompt)
    else:
        assert template.render(messages, add_generation_prompt=add_generation_prompt) == expected


@STEADY
@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), st.text()), min_size=1, max_size=4)
)
def test_any_text_renders_as_in_transformers(transformers_tokenizer, turns):
    messages = [Message(role=role, content=text) for role, text in turns]
    expected = by_transformers(transformers_tokenizer, QWEN, messages, add_generation_prompt=True)
    assert ChatTemplate(QWEN).render(messages) == expected


@pytest.mark.model
@pytest.mark.parametrize("conversation", [name for name in CONVERSATIONS if name != "tool calls"])
def test_the_default_model_s_template_renders_as_in_transformers(conversation):
    transformers = importlib.import_module("transformers")
    from cartoolkit.engine.decoders.hf_tokenizer import HFTokenizer
    from cartoolkit.models import resolve

    tokenizer = transformers.AutoTokenizer.from_pretrained(resolve().path, local_files_only=True)
    messages = CONVERSATIONS[conversation]
    for end in (True, False):
        expected = tokenizer.apply_chat_template(
            [plain(m) for m in messages], tokenize=False, add_generation_prompt=end
        )
        assert HFTokenizer(tokenizer).chat_template.render(messages, add_generation_prompt=end) == expected


def test_text_blocks_are_joined_into_the_content():
    message = Message(role="user", content=[TextBlock(text="a"), TextBlock(text="b")])
    assert ChatTemplate("{{ messages[0].content }}").render([message]) == "ab"


def test_a_message_without_calls_has_no_key_for_them():
    source = "{{ 'tool_calls' in messages[0] }} {{ 'tool_call_id' in messages[0] }}"
    assert ChatTemplate(source).render([USER]) == "False False"


# A template is somebody else's program


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ raise_exception.__globals__['__builtins__'] }}",
        "{{ strftime_now.__globals__.json }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{{ messages[0].update({'role': 'system'}) }}",
        "{{ messages.append(1) }}",
        "{% include '/etc/hostname' %}",
        "{% import 'os' as os %}{{ os.listdir('.') }}",
        "{% for i in range(1000000000) %}{% endfor %}",
    ],
)
def test_a_template_that_reaches_out_is_refused(source):
    with pytest.raises(InvalidRequest, match="chat template refuses"):
        ChatTemplate(source).render([USER])


@pytest.mark.parametrize(
    "source",
    ["{{ ''.__class__ }}", "{{ messages.__init__ }}", "{{ ''|attr('__class__')|attr('__mro__') }}"],
)
def test_inner_attributes_print_nothing(source):
    assert ChatTemplate(source).render([USER]) == ""


@pytest.mark.parametrize(
    "source",
    [
        "{% if %}",
        "{{ nothing.there }}",
        "{{ messages[7].role }}",
        "{{ messages[0].content + 1 }}",
        "{{ 1 / 0 }}",
        "{{ messages | nosuchfilter }}",
        "{{ none | items | list + none }}",
        "{{ raise_exception('I take no text') }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_whatever_goes_wrong_inside_is_a_refusal_with_a_hint(source):
    with pytest.raises(
        InvalidRequest, match="the model's chat template refuses this conversation: "
    ) as caught:
        ChatTemplate(source).render([USER])
    assert "chat_template=False" in caught.value.hint
    assert caught.value.__cause__ is not None


def test_a_refusal_repeats_the_template_s_own_words():
    with pytest.raises(InvalidRequest, match="roles must alternate user/assistant"):
        ChatTemplate(LLAMA_2, TOKENS).render([USER, USER])


# Marks


@pytest.mark.parametrize(
    ("source", "marks"),
    [
        (LLAMA_2, {"[INST]", "[/INST]"}),
        (LLAMA_3, {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}),
        (MISTRAL, {"[INST]", "[/INST]"}),
        (GEMMA, {"<start_of_turn>", "<end_of_turn>"}),
        (QWEN, {"<|im_start|>", "<|im_end|>"}),
        ("{{ '<｜User｜>' + messages[0].content + '<｜Assistant｜>' }}", {"<｜User｜>", "<｜Assistant｜>"}),
        ("{{ messages[0].content }}: {{ 1 < 2 | abs }} a |> b <| c", set()),
    ],
)
def test_marks_are_the_control_tokens_in_the_source(source, marks):
    assert ChatTemplate(source).marks == marks


@pytest.mark.parametrize(
    ("prompt", "formatted"),
    [
        ("<|im_start|>user\nHi<|im_end|>", True),
        ("  <|im_start|>user\nHi<|im_end|>", True),
        ("Hi<|im_end|>", False),
        ("What does <|im_start|> mean?", False),
        ("Hi", False),
        ("", False),
        ("[INST] Hi [/INST]", False),
        ("<|im_start| >", False),
    ],
)
def test_a_prompt_is_formatted_if_it_begins_with_a_mark_of_this_template(prompt, formatted):
    assert ChatTemplate(QWEN).is_formatted(prompt) is formatted


def test_a_template_without_marks_leaves_no_prompt_alone():
    assert not ChatTemplate("{{ messages[0].content }}").is_formatted("<|im_start|>")


# Context


def test_without_a_context_the_conversation_stays_as_it_is():
    for nothing in (None, ""):
        assert with_context([SYSTEM, USER], nothing) == [SYSTEM, USER]


def test_a_context_makes_a_system_message():
    first, *others = with_context([USER, ANSWER], "The sky is green.")
    assert first.role == "system"
    assert first.text().endswith("\n\nThe sky is green.")
    assert others == [USER, ANSWER]


def test_a_context_comes_after_what_the_system_message_says():
    first, *others = with_context([SYSTEM, USER], "The sky is green.")
    assert first.role == "system"
    assert first.text().startswith(SYSTEM.text() + "\n\n")
    assert first.text().endswith("\n\nThe sky is green.")
    assert others == [USER]


def test_a_system_message_further_down_stays_where_it_is():
    conversation = with_context([USER, SYSTEM], "c")
    assert [m.role for m in conversation] == ["system", "user", "system"]
    assert conversation[1:] == [USER, SYSTEM]


def test_a_context_without_a_conversation_is_a_system_message():
    (only,) = with_context([], "c")
    assert only.text().endswith("c")


def test_the_caller_s_list_is_not_changed():
    conversation = [SYSTEM, USER]
    with_context(conversation, "c")
    assert with_context(conversation, None) is not conversation
    assert conversation == [SYSTEM, USER]


@pytest.mark.parametrize("name", [name for name in WILD if name != "JSON"])
@pytest.mark.parametrize("conversation", [[USER], [SYSTEM, USER], [SYSTEM, USER, ANSWER, USER]])
def test_a_context_is_in_the_prompt_or_the_template_refuses(name, conversation):
    template = ChatTemplate(WILD[name], TOKENS)
    grounded = with_context(conversation, "The sky is green & wide.")
    if name == "Gemma":
        with pytest.raises(InvalidRequest, match="System role not supported"):
            template.render(grounded)
    else:
        assert "The sky is green & wide." in template.render(grounded)


REFUSES_SYSTEM = ChatTemplate(
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}"
)
IGNORES_SYSTEM = ChatTemplate(
    "{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("template", [REFUSES_SYSTEM, IGNORES_SYSTEM])
def test_a_context_goes_into_the_user_turn_where_there_is_no_system_turn(template):
    question = [Message(role="user", content="Who?")]
    assert render_grounded(template, question, "Ada did.") == (
        "<user>Answer with the help of the following text.\n\nAda did.\n\nWho?"
    )
    assert render_grounded(template, question, None) == "<user>Who?"


def test_a_conversation_that_the_template_refuses_anyway_is_refused_with_a_context_too():
    with pytest.raises(InvalidRequest, match="no system role"):
        render_grounded(REFUSES_SYSTEM, [Message(role="system", content="Be brief.")], "Ada did.")
