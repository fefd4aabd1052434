package api

import "errors"

// maxFaults limits the faults that one error lists.
const maxFaults = 32

// faults collects the faults of an object.
type faults []*Error

// note appends errs, and the faults that they contain in Others; nil errors are
// ignored.
func (f *faults) note(errs ...error) {
	for _, err := range errs {
		var e *Error
		if !errors.As(err, &e) || e == nil {
			continue
		}
		for _, one := range append([]*Error{e}, e.Others...) {
			if len(*f) >= maxFaults {
				return
			}
			if len(one.Others) > 0 { // they are appended separately below
				alone := *one
				alone.Others = nil
				one = &alone
			}
			*f = append(*f, one)
		}
	}
}

// one returns the first fault with the others in it, or nil if there is none.
func (f faults) one() *Error {
	if len(f) == 0 {
		return nil
	}
	e := *f[0]
	e.Others = f[1:]
	return &e
}

// err returns one as an error, or nil if there is no fault.
func (f faults) err() error {
	if e := f.one(); e != nil {
		return e
	}
	return nil
}

// Join returns errs as one error: the first error that is not about a field, unchanged;
// otherwise the first fault with the others in it; nil if all are nil.
func Join(errs ...error) error {
	var bad faults
	for _, err := range errs {
		if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Field == "") {
			return err
		}
		bad.note(err)
	}
	return bad.err()
}

// joined returns the first of errs that is not nil, with the others in it. It also
// prevents a nil *Error from becoming a non-nil error.
func joined(errs ...*Error) error {
	var bad faults
	for _, e := range errs {
		bad.note(e)
	}
	return bad.err()
}
