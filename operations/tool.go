package operations

import (
	"context"
	"encoding/json"
)

// ToolArgs are the arguments of tool.
type ToolArgs struct {
	Caller string          `json:"caller" op:"required" doc:"creature on whose behalf the tool is called: id, or a name that is unique"`
	Name   string          `json:"name" op:"required" doc:"name of the tool; tools.md lists them"`
	Args   json.RawMessage `json:"args,omitempty" doc:"its arguments"`
}

// ToolResult is the result of tool: the answer of the tool, exactly as the creature
// would get it.
type ToolResult struct{ json.RawMessage }

func toolOperations() []Operation {
	return []Operation{
		wait("tool", "Calls a group tool on behalf of a creature, in a turn of its own, and answers after the turn's commit. "+
			"The result is the tool's result.", callTool),
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
