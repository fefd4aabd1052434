package histtest

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/basalt-gpu/basalt/api"
)

// outcome is the outcome of an operation, as the client observed it.
type outcome string

const (
	succeeded outcome = "ok"
	exists    outcome = "exists"
	conflict  outcome = "conflict"
	notFound  outcome = "not found"
	unknown   outcome = "unknown"
)

// register is the state of one object.
type register struct {
	there    bool  // the object exists
	revision int64 // unseen after a write without an answer
	value    string
}

const unseen = -1

type input struct {
	op Op
}

type output struct {
	outcome outcome
	version Version
}

// model is one object: it accepts an answer that the object could give. A write with an
// unknown outcome may take effect at any position, and one that the search puts after
// everything else has not happened.
var model = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, in, out any) (bool, any) { return step(state.(register), in.(input).op, out.(output)) },
	DescribeOperation: func(in, out any) string {
		op, o := in.(input).op, out.(output)
		return fmt.Sprintf("%s %s expect %d %q → %s %d %q", op.Kind, op.Object, op.Expect, op.Value, o.outcome, o.version.Revision, o.version.Value)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
}

// step returns the next state; ok is false if the answer is not possible.
func step(s register, op Op, o output) (ok bool, next register) {
	fits := s.there && (op.Expect == api.AnyRevision || s.revision == unseen || s.revision == op.Expect)
	next = s
	switch op.Kind {
	case Create:
		switch o.outcome {
		case succeeded:
			return !s.there, register{true, o.version.Revision, op.Value}
		case exists:
			return s.there, s
		case unknown:
			if !s.there {
				next = register{true, unseen, op.Value}
			}
			return true, next
		}
	case Update, Delete:
		after := register{}
		if op.Kind == Update {
			after = register{true, o.version.Revision, op.Value}
		}
		switch o.outcome {
		case succeeded:
			return fits, after
		case conflict:
			return s.there && (s.revision == unseen || s.revision != op.Expect), s
		case notFound:
			return !s.there, s
		case unknown:
			if fits {
				if next = after; next.there {
					next.revision = unseen
				}
			}
			return true, next
		}
	case Get, List:
		if o.outcome == notFound {
			return !s.there, s
		}
		next.revision = o.version.Revision
		return s.there && s.value == o.version.Value && (s.revision == unseen || s.revision == o.version.Revision), next
	}
	return false, s
}
