package histtest

import (
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTimeout bounds the search for an explanation.
const checkTimeout = 2 * time.Minute

// Check fails the test unless the history can be explained. Operations that have not
// returned count as having an unknown outcome.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, problem := range revisions(r.history) {
		t.Errorf("histtest: %s", problem)
	}
	// A write with an unknown outcome whose value was never read may as well not have
	// happened. An explanation without such writes suffices; only if there is none are
	// they included, which takes far longer.
	few := byObject(withoutUnseen(r.history))
	for id, ops := range byObject(r.history) {
		if porcupine.CheckOperationsTimeout(model, few[id], checkTimeout) == porcupine.Ok {
			continue
		}
		result, info := porcupine.CheckOperationsVerbose(model, ops, checkTimeout)
		switch result {
		case porcupine.Illegal:
			t.Errorf("histtest: the %d operations on %s have no linearization, want one; see %s", len(ops), id, r.draw(info))
		case porcupine.Unknown:
			t.Errorf("histtest: no linearization of the %d operations on %s was found within %v", len(ops), id, checkTimeout)
		}
	}
}

// withoutUnseen drops writes with an unknown outcome whose value was never read.
func withoutUnseen(history []*Pending) (out []*Pending) {
	read := map[string]bool{}
	for _, p := range history {
		if p.op.Kind == Get && p.outcome == succeeded {
			read[p.result.Value] = true
		}
		for _, v := range p.result.Items {
			read[v.Value] = true
		}
	}
	for _, p := range history {
		if p.outcome == unknown && (p.op.Kind == Create || p.op.Kind == Update) && !read[p.op.Value] {
			continue
		}
		out = append(out, p)
	}
	return out
}

// byObject returns the history of each object. Reads without an answer are dropped; a
// list is a read of every object.
func byObject(history []*Pending) map[string][]porcupine.Operation {
	out := map[string][]porcupine.Operation{}
	for _, p := range history {
		if p.op.Object != "" {
			out[p.op.Object] = nil
		}
	}
	for _, p := range history {
		op := porcupine.Operation{ClientId: p.client, Input: input{p.op}, Call: p.call, Return: p.returned}
		switch {
		case p.op.Kind == List && p.outcome == succeeded:
			for id := range out {
				o := output{notFound, Version{}}
				if v, ok := p.result.Items[id]; ok {
					o = output{succeeded, v}
				}
				op.Input, op.Output = input{Op{Kind: List, Object: id}}, o
				out[id] = append(out[id], op)
			}
			continue
		case p.op.Kind == List, p.op.Kind == Get && p.outcome == unknown:
			continue
		case p.outcome == unknown:
			op.Return = math.MaxInt64
		}
		op.Output = output{p.outcome, p.result.Version}
		out[p.op.Object] = append(out[p.op.Object], op)
	}
	for id := range out { // a client with an open operation would run two at a time: the drawing needs one lane per operation
		slices.SortStableFunc(out[id], func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	}
	return out
}

// draw writes a drawing of the history and returns its path.
func (r *Recorder) draw(info porcupine.LinearizationInfo) string {
	f, err := os.CreateTemp(r.Drawings, "histtest-*.html")
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if err := porcupine.Visualize(model, info, f); err != nil {
		return err.Error()
	}
	return f.Name()
}
