package llmcap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/capability"
)

// Do implements [capability.Grant].
func (g *grant) Do(ctx context.Context, call capability.Call) capability.Result {
	q, err := g.read(call.Body)
	if err != nil {
		return capability.Failure(abi.CodeOf(err), err.Error())
	}
	if g.rules != nil {
		return g.scripted(ctx, q, len(call.Body))
	}
	body, err := g.wire(q)
	if err != nil {
		return capability.Failure(abi.InvalidArgument, "llm: the request cannot be encoded: "+err.Error())
	}
	head, err := json.Marshal(map[string]any{
		"method": http.MethodPost, "url": g.url, "headers": map[string]string{"content-type": "application/json", "accept": "text/event-stream, application/json"},
	})
	if err != nil {
		return capability.Failure(abi.Internal, "llm: "+err.Error())
	}
	inner := call
	inner.Request = capability.Request{Head: head, Body: body}
	r := g.http.Do(ctx, inner)
	switch {
	case r.Code != abi.OK:
		if len(r.Payload) > 0 { // a status after which the request is tried again
			r.Text = g.status(r, "try again later")
		}
		r.Payload, r.Headers = nil, nil
		// A server that had begun to answer, or that did not answer in time, may have done all
		// of the work.
		if r.Status == http.StatusOK || r.Code == abi.Deadline {
			r.Used = g.used(q.Model, guess(len(call.Body)), q.MaxTokens)
		}
		return r
	case r.Status != http.StatusOK:
		return g.refusal(r)
	}
	return g.answer(ctx, q, len(call.Body), r)
}

// refusal is the result of a response with another status than 200.
func (g *grant) refusal(r capability.Result) capability.Result {
	code, remedy := abi.Unavailable, "check the endpoint"
	switch r.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		code, remedy = abi.InvalidArgument, "correct the request"
	case http.StatusUnauthorized, http.StatusForbidden:
		code, remedy = abi.Denied, "check key in the recipe"
	case http.StatusPaymentRequired:
		code, remedy = abi.Denied, "check the account with the provider of the server"
	case http.StatusNotFound:
		code, remedy = abi.NotFound, "check endpoint and models in the recipe"
	case http.StatusRequestEntityTooLarge:
		code, remedy = abi.TooLarge, "leave out old messages"
	}
	return capability.Result{Code: code, Text: g.status(r, remedy), Status: r.Status}
}

// status describes the status and the text with which a server has answered.
func (g *grant) status(r capability.Result, remedy string) string {
	return fmt.Sprintf("llm: the server answered %d %s: %s; %s", r.Status, http.StatusText(r.Status), quote(g.veil(errorText(r.Payload))), remedy)
}

// answer is the result of a response with the status 200.
func (g *grant) answer(ctx context.Context, q request, size int, r capability.Result) capability.Result {
	failed := func(code abi.Code, again bool, text string) capability.Result {
		return capability.Result{Code: code, Text: "llm: " + text, Status: r.Status, Again: again, Used: g.used(q.Model, guess(size), q.MaxTokens)}
	}
	kind, _, _ := mime.ParseMediaType(r.Headers["content-type"])
	if kind != "text/event-stream" && kind != "application/json" {
		return failed(abi.Unavailable, false, "the server answered with the content type "+quote(r.Headers["content-type"])+", but JSON or a stream of events was expected; check the endpoint")
	}
	a, long, err := assemble(ctx, r.Payload, kind == "text/event-stream", g.MaxResponse)
	var reported errServer
	switch {
	case err != nil && ctx.Err() != nil:
		return failed(abi.Deadline, true, "the answer was not read in time; raise timeout in the recipe, or try again")
	case errors.Is(err, errCalls), errors.Is(err, errName):
		return failed(abi.TooLarge, false, err.Error()+"; change the messages or the functions, or use another model")
	case errors.Is(err, errChoices):
		return failed(abi.TooLarge, false, err.Error()+", although one was requested; check the endpoint")
	case errors.As(err, &reported):
		return failed(abi.Unavailable, true, errServer(g.veil(string(reported))).Error()+"; try again")
	case err != nil:
		return failed(abi.Unavailable, true, err.Error()+"; try again")
	}
	if !a.counted(q, size) {
		a.Usage = usage{Prompt: guess(size), Completion: min(a.size(), q.MaxTokens), Estimated: true}
		if long {
			a.Usage.Completion = q.MaxTokens
		}
	}
	g.clean(&a)
	a.Usage.Total = a.Usage.Prompt + a.Usage.Completion
	a.Model = q.Model
	used := g.used(q.Model, a.Usage.Prompt, a.Usage.Completion)
	if cost, ok := used[money]; ok {
		a.Cost = json.Number(capability.FormatMoney(cost))
	}
	var payload []byte
	if !long {
		if payload, err = json.Marshal(a); err != nil {
			return failed(abi.Internal, false, err.Error())
		}
	}
	if long || int64(len(payload)) > g.MaxResponse {
		out := failed(abi.TooLarge, false, fmt.Sprintf("the answer has more than %d bytes; lower max_tokens, or raise max_response in the recipe", g.MaxResponse))
		out.Used = used
		return out
	}
	return capability.Result{Payload: payload, Status: r.Status, Used: used}
}

// clean removes the secrets from an answer.
func (g *grant) clean(a *answer) {
	a.FinishReason = g.veil(a.FinishReason)
	a.FinishReason = a.FinishReason[:min(len(a.FinishReason), mostReason)]
	if a.Message.Content != nil {
		*a.Message.Content = g.veil(*a.Message.Content)
	}
	for i := range a.Message.ToolCalls {
		c := &a.Message.ToolCalls[i]
		c.ID, c.Function.Name, c.Function.Arguments = g.veil(c.ID), g.veil(c.Function.Name), g.veil(c.Function.Arguments)
	}
}

// mostAdded is how many tokens a server may add to a prompt: instructions of its own, and
// marks around messages and tools.
const mostAdded = 512

// counted reports whether the server has reported plausible numbers of tokens: a token of
// a prompt has at least a byte, and an answer has not many more tokens than allowed, and
// at least one if it has a text.
func (a *answer) counted(q request, size int) bool {
	u := a.Usage
	return u.Prompt > 0 && u.Prompt <= int64(size)+mostAdded && u.Completion >= 0 && u.Completion <= q.MaxTokens+q.MaxTokens/8+16 && (u.Completion > 0 || a.size() == 0)
}

// size is about how many tokens the answer has.
func (a *answer) size() int64 {
	n := 0
	if a.Message.Content != nil {
		n = len(*a.Message.Content)
	}
	for i := range a.Message.ToolCalls {
		f := &a.Message.ToolCalls[i].Function
		n += len(f.Name) + len(f.Arguments)
	}
	return guess(n)
}
