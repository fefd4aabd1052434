package simulation

import (
	"iter"
	"time"
)

// thread is code that waits in virtual time. It belongs to a process, with which it is paused
// and ended; the operator's threads belong to none.
type thread struct {
	w     *world
	p     *proc
	name  string
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	nap   uint64 // number of its waits, so that a late wake-up for an earlier one is ignored
	over  bool
}

// killed is the panic value that unwinds a thread at the point where it waits.
type killed struct{}

// spawn creates a thread; it begins with an event of its own.
func (w *world) spawn(p *proc, name string, f func(t *thread)) *thread {
	t := &thread{w: w, p: p, name: name}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(killed); !ok {
					panic(r)
				}
			}
		}()
		t.yield = yield
		f(t)
	})
	if p != nil {
		p.threads = append(p.threads, t)
	}
	w.after(0, name, func() { t.wake(0) })
	return t
}

// wake resumes the thread if it is still in the nap of that number.
func (t *thread) wake(nap uint64) {
	if t.over || t.nap != nap {
		return
	}
	if t.p != nil && t.p.frozen() {
		t.p.held = append(t.p.held, func() { t.wake(nap) })
		return
	}
	t.nap++
	was := t.w.cur
	t.w.cur = t
	_, more := t.next()
	t.w.cur = was
	t.over = t.over || !more
}

// end kills the thread at the point where it waits.
func (t *thread) end() {
	if !t.over {
		t.over = true
		t.stop()
	}
}

// park waits until the thread is woken from this nap.
func (t *thread) park() {
	if !t.yield(struct{}{}) {
		panic(killed{})
	}
}

func (t *thread) sleep(d time.Duration) {
	nap := t.nap
	t.w.after(d, t.name, func() { t.wake(nap) })
	t.park()
}

// wait suspends the current thread for d. It does nothing in an event without a thread.
func (w *world) wait(d time.Duration) {
	if w.cur != nil {
		w.cur.sleep(d)
	}
}
