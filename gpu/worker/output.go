package worker

import "sync"

// output is what a context's kernels have printed and the guest has not read yet:
// the FIFO of CUDA's printf, in which new texts replace the oldest ones (CUDA C++
// Programming Guide, "Formatted Output", "Limitations").
type output struct {
	mu    sync.Mutex // guards the following
	limit uint64     // bytes
	held  uint64     // bytes, including outputCost for each text
	texts []printed  // oldest first
	begun bool       // something has been printed
}

type printed struct {
	to   uint32 // abi.Output…
	text []byte
}

const (
	// outputCost is what a text counts besides its bytes, as a call on a card
	// uses more of the FIFO than its text.
	outputCost = 32
	// A context's FIFO has minOutput to maxOutput bytes; those of a session have
	// at most maxOutputs together.
	minOutput  = 64 << 10
	maxOutput  = 16 << 20
	maxOutputs = 128 << 20
)

// add stores a copy of a text, and reports whether it is the first one.
func (o *output) add(to uint32, text []byte) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text = text[:min(uint64(len(text)), o.limit-outputCost)]
	first = len(o.texts) == 0
	o.begun = true
	o.texts = append(o.texts, printed{to, append([]byte(nil), text...)})
	for o.held += uint64(len(text)) + outputCost; o.held > o.limit; {
		o.held -= uint64(len(o.texts[0].text))
		o.drop()
	}
	return first
}

// drop removes the oldest text, whose bytes are no longer counted.
func (o *output) drop() {
	o.held -= outputCost
	o.texts[0] = printed{} // so that the array does not keep the text alive
	o.texts = o.texts[1:]
}

// take moves the oldest texts with the same destination into b, as far as they fit.
func (o *output) take(b []byte) (n int, to uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.texts) > 0 && n < len(b) {
		t := &o.texts[0]
		if to != 0 && t.to != to {
			break
		}
		to = t.to
		k := copy(b[n:], t.text)
		n, o.held = n+k, o.held-uint64(k)
		if t.text = t.text[k:]; len(t.text) > 0 {
			break
		}
		o.drop()
	}
	if len(o.texts) == 0 {
		o.texts = nil // its array may be large
	}
	return n, to
}

// resize changes the limit; it returns false without a change when something has
// been printed.
func (o *output) resize(limit uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.begun {
		o.limit = limit
	}
	return !o.begun
}

func (o *output) size() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.limit
}
