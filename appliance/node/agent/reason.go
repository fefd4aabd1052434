package agent

import (
	"errors"

	"github.com/basalt-gpu/basalt/api"
)

// Agents write only texts for every reader into statuses: the nodes that are involved are
// in the assignments, and what a tool printed is only logged. Each text has the code of
// its cause beside it, which the portal translates.

// Reasons that several decisions have.
var (
	instanceMoving = plainly(api.CauseInstanceMoving, "its instance is being moved")
	volumeGone     = plainly(api.CauseVolumeGone, "its volume does not exist any more")
	volumeNotReady = plainly(api.CauseVolumeNotReady, "waiting for its volume")
)

// plainly returns a reason about the object itself.
func plainly(code api.CauseCode, text string) api.Reason { return api.PlainReason(text, code, "") }

// about returns a reason about another object of the user, by its name.
func about(code api.CauseCode, text, name string) api.Reason {
	return api.PlainReason(text+" "+name, code, name)
}

// reasonOf returns the reason for an error that every reader of a status may see: the
// domain error in the chain, without its details.
func reasonOf(err error) api.Reason {
	var e *api.Error
	if !errors.As(err, &e) {
		return plainly(api.CauseFailed, "it failed because of a problem of its node, whose log has the details")
	}
	out := *e
	out.Detail = ""
	return api.ReasonOf(&out, "")
}

// userMessage returns the text of the reason for an error.
func userMessage(err error) string { return reasonOf(err).Text }

// causeBeside returns the cause for a status: none beside an empty text.
func causeBeside(text string, c api.Cause) api.Cause {
	if text == "" {
		return api.Cause{}
	}
	return c
}
