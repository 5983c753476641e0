package operations

import (
	"context"
	"encoding/json"
)

// ToolArgs are the arguments of tool.
type ToolArgs struct {
	Caller string          `json:"caller" op:"required" doc:"creature in whose name the tool is called, by id, or name where it is unique"`
	Name   string          `json:"name" op:"required" doc:"the tool; they are listed in tools.md"`
	Args   json.RawMessage `json:"args,omitempty" doc:"its arguments"`
}

// ToolResult is the result of tool: what the tool answers, exactly as the caller
// would get it.
type ToolResult struct{ json.RawMessage }

func toolOperations() []Operation {
	return []Operation{
		wait("tool", "Calls a group tool in the name of a creature, as a turn of its own, and answers after its commit. "+
			"The result is that of the tool.", callTool),
	}
}

func callTool(_ context.Context, s *client, a *ToolArgs) (*ToolResult, func(context.Context) (*ToolResult, error), error) {
	caller, err := s.t.FindCreature("", a.Caller)
	if err != nil {
		return nil, nil, err
	}
	call, err := s.t.StartTool(caller, a.Name, a.Args)
	if err != nil {
		return nil, nil, err
	}
	return nil, func(ctx context.Context) (*ToolResult, error) {
		result, err := call.Wait(ctx)
		if err != nil {
			return nil, err
		}
		return &ToolResult{result}, nil
	}, nil
}
