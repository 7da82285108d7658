"""``dayfly.adapters.mini_swe`` in the smallest agent of mini-SWE-agent."""

from __future__ import annotations

from typing import Any

import pytest
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments import get_environment
from minisweagent.models.litellm_model import LitellmModel

from dayfly import NotFound, Sandbox
from stage import MODEL, scripted

CLASS = "dayfly.adapters.mini_swe.DayflyEnvironment"
# litellm sends these back in messages of the model. OpenAI has them in no request, and a server that
# refuses what it does not know refuses them; ours does.
NOT_OF_OPENAI = {"annotations", "provider_specific_fields"}


class StrictModel(LitellmModel):
    def _prepare_messages_for_api(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        prepared = super()._prepare_messages_for_api(messages)
        return [{key: one[key] for key in one if key not in NOT_OF_OPENAI} for one in prepared]


def test_an_agent_works_until_it_submits() -> None:
    submit = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat answer"
    turns = [
        {"content": ["Begin.", {"tool": "bash", "arguments": {"command": "echo $((6*7)) > answer; cat no"}}]},
        {
            "expect": {"result": {"contains": ["<returncode>1</returncode>", "No such file"]}},
            "content": ["Submit.", {"tool": "bash", "arguments": {"command": submit}}],
        },
    ]
    environment = get_environment({"environment_class": CLASS, "template": "base", "ttl_seconds": 600})
    with scripted(*turns) as script:
        model = StrictModel(
            model_name=f"openai/{MODEL}",
            model_kwargs={"api_base": f"{script.address}/v1", "api_key": "key"},
            cost_tracking="ignore_errors",
        )
        agent = DefaultAgent(
            model,
            environment,
            system_template="You are on {{system}} {{machine}}.",
            instance_template="{{task}}",
        )
        end = agent.run("Compute six times seven.")
    environment.cleanup()
    assert end["exit_status"] == "Submitted"
    assert end["submission"] == "42\n"
    assert agent.messages[0]["content"] == "You are on Linux x86_64."
    with pytest.raises(NotFound):
        Sandbox.connect(environment.sandbox.id)


def test_what_goes_wrong_is_told_and_a_wrong_option_refused() -> None:
    environment = get_environment({"environment_class": CLASS, "timeout": 2, "env": {"STAGE": "test"}, "ttl_seconds": 600})
    late = environment.execute({"command": "echo $STAGE; sleep 60"})
    assert late["returncode"] == -1
    assert late["output"] == "test\n"
    assert "timeout of 2 seconds" in late["exception_info"]
    environment.cleanup()
    gone = environment.execute({"command": "true"})
    assert gone["returncode"] == -1
    with pytest.raises(TypeError, match="image"):
        get_environment({"environment_class": CLASS, "image": "debian"})


def test_a_forgotten_environment_deletes_its_sandbox() -> None:
    environment = get_environment({"environment_class": CLASS, "ttl_seconds": 600})
    sandbox = environment.sandbox.id
    del environment
    with pytest.raises(NotFound):
        Sandbox.connect(sandbox)
