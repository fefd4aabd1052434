package worker

import (
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// ProtocolError describes which rule of the channel the guest violated. It ends
// only the session.
type ProtocolError struct{ What string }

func (e *ProtocolError) Error() string { return "the guest violated the protocol: " + e.What }

func protocol(format string, a ...any) error { return &ProtocolError{fmt.Sprintf(format, a...)} }

// errLater means that the command completes when the device has executed it.
var errLater = errors.New("completes later")

// resultOf returns the CUresult of an error.
func resultOf(err error) abi.Result {
	var r abi.Result
	switch {
	case err == nil:
		return abi.Success
	case errors.As(err, &r) && r != abi.Success:
		return r
	}
	return abi.ErrUnknown
}

// deathResult returns the result of every later call in a session that err ended.
func deathResult(err error) abi.Result {
	var p *ProtocolError
	if errors.As(err, &p) {
		return abi.ErrIllegalState
	}
	return resultOf(err)
}
