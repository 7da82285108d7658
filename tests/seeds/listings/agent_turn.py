# An agent on another model's API, one sandbox for each turn. Changed: the import.
from dayfly import Sandbox
from openai import OpenAI

oai = OpenAI()

def agent_turn(user_msg: str) -> str:
    with Sandbox(template="code-interpreter") as sb:
        messages = [{"role": "user", "content": user_msg}]
        while True:
            resp = oai.chat.completions.create(
                model="gpt-4.1",
                messages=messages,
                tools=[{
                    "type": "function",
                    "function": {
                        "name": "run_python",
                        "parameters": {
                            "type": "object",
                            "properties": {"code": {"type": "string"}},
                        },
                    },
                }],
            )
            msg = resp.choices[0].message
            if not msg.tool_calls:
                return msg.content

            for tc in msg.tool_calls:
                code = json.loads(tc.function.arguments)["code"]
                result = sb.run(f"python -c {shlex.quote(code)}")
                messages.append({
                    "role": "tool",
                    "tool_call_id": tc.id,
                    "content": result.stdout + result.stderr,
                })
