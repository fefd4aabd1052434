package cuda

import "slices"

// The bytes of a copy to the host arrive after the device has done it (staging.go).
// Work that is ordered after the copy may be on the device, and done, earlier than
// that. Whoever waits for that work expects the bytes to be there, so it is reported
// only after the copy. These are the rules of the CUDA driver API for what is ordered
// after an operation of a stream:
//
//   - later operations of the stream;
//   - later operations of a stream that has waited for an event recorded later in the
//     stream;
//   - later operations of the default stream, if the stream blocks on it, and those
//     of all streams that do so after them.
//
// An operation needs the newest such copy of each stream. The lists are determined in
// the guest's order, when operations are enqueued. They are never changed but replaced,
// and contain no copies that are over at that time: without such copies they are empty.

// orders determines what an operation that is being enqueued needs; callers hold mu.
func (c *context) orders(o *op) {
	s := o.stream
	switch {
	case s == c.def:
		s.needs = newest(s.needs, c.blocking)
		c.blocking = nil
	case s.blocking:
		s.needs = newest(s.needs, c.def.owed())
	default:
		s.needs = newest(s.needs, nil)
	}
	if e := o.event; e != nil && e.record != nil && !o.records {
		s.needs = newest(s.needs, e.record.needs)
	}
	o.needs = s.needs
	if o.staged() && !o.part.toDevice {
		s.landing = o
	}
	if s.blocking && s != c.def {
		c.blocking = newest(c.blocking, s.owed())
	}
}

// owed returns the copies that work ordered after the stream's latest operation needs;
// callers hold the context's mu.
func (s *stream) owed() []*op {
	if s.landing != nil && s.landing.over.Load() {
		s.landing = nil
	}
	if s.landing == nil {
		return s.needs
	}
	return newest(s.needs, []*op{s.landing})
}

// newest returns the newest copy of each stream in a and b that is not over.
func newest(a, b []*op) (all []*op) {
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	for _, o := range slices.Concat(a, b) {
		i := slices.IndexFunc(all, func(x *op) bool { return x.stream == o.stream })
		switch {
		case o.over.Load():
		case i < 0:
			all = append(all, o)
		case all[i].sequence < o.sequence:
			all[i] = o
		}
	}
	return all
}

// reportable reports whether an operation that the device has done is over: its bytes
// have arrived, and those of the copies before it.
func (c *context) reportable(o *op) bool {
	if o.part != nil && o.part.moving {
		return false
	}
	return o.result != nil || !slices.ContainsFunc(o.needs, func(x *op) bool { return !x.over.Load() })
}
