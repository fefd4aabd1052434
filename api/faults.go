package api

import "errors"

// maxFaults that one error names.
const maxFaults = 32

// faults are what is wrong with an object.
type faults []*Error

// note what is wrong, with what it names besides; nil is nothing.
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
			if len(one.Others) > 0 { // which follow by themselves
				alone := *one
				alone.Others = nil
				one = &alone
			}
			*f = append(*f, one)
		}
	}
}

// one is the first fault, with the others in it; nil when there is none.
func (f faults) one() *Error {
	if len(f) == 0 {
		return nil
	}
	e := *f[0]
	e.Others = f[1:]
	return &e
}

// err is one as an error, nil when there is none.
func (f faults) err() error {
	if e := f.one(); e != nil {
		return e
	}
	return nil
}

// Join returns errs as one error: an error that is no fault of a field as it is,
// otherwise the first with the others in it; nil when there is none.
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

// joined is the first of errs that is not nil, with the others in it. It also keeps a
// nil *Error from becoming an error that is not nil.
func joined(errs ...*Error) error {
	var bad faults
	for _, e := range errs {
		bad.note(e)
	}
	return bad.err()
}
