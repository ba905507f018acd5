"""An MCP server with one tool, a calculator; it needs the package mcp, which keju[mcp] brings."""

import ast
import operator

from mcp.server import MCPServer

server = MCPServer("calculator")
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def value(node):
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -value(inner)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](value(left), value(right))
    raise ValueError("only whole numbers, +, -, * and brackets")


@server.tool()
def calculate(expression: str) -> str:
    """Calculate an expression of whole numbers, e.g. ((-5 + 9) * 4)."""
    return str(value(ast.parse(expression, mode="eval").body))


if __name__ == "__main__":
    server.run()
