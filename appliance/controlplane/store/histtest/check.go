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

// Check fails the test unless the history can be explained. Operations that
// are still under way count as ones of which nobody knows.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, problem := range revisions(r.history) {
		t.Errorf("histtest: %s", problem)
	}
	// A write that nobody knows of and whose value nobody ever read may just as
	// well not have happened. An explanation without such writes is one; only
	// where there is none are they tried as well, which takes far longer.
	few := byObject(withoutUnseen(r.history))
	for id, ops := range byObject(r.history) {
		if porcupine.CheckOperationsTimeout(model, few[id], checkTimeout) == porcupine.Ok {
			continue
		}
		result, info := porcupine.CheckOperationsVerbose(model, ops, checkTimeout)
		switch result {
		case porcupine.Illegal:
			t.Errorf("histtest: no order of the %d operations on %s explains their answers; %s shows them", len(ops), id, r.draw(info))
		case porcupine.Unknown:
			t.Errorf("histtest: whether the %d operations on %s can be explained was not found out in %v", len(ops), id, checkTimeout)
		}
	}
}

// withoutUnseen leaves out writes without an answer whose value nobody read.
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

// byObject is the history of each object. What was read and never answered
// says nothing; a list is a read of every object.
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
	for id := range out { // a client of which an operation is open would do two at a time: the drawing wants lanes
		slices.SortStableFunc(out[id], func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	}
	return out
}

// draw writes the history where a person can look at it.
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
