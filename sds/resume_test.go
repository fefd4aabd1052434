package sds

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// TestResume reads a source that is interrupted every 1,000 bytes, in all
// possible ways.
func TestResume(t *testing.T) {
	content := bytes.Repeat([]byte("basalt"), 5000)
	opened, closed := 0, 0
	r := &resume{ctx: t.Context(), size: int64(len(content)), open: func(_ context.Context, from int64) (io.ReadCloser, error) {
		opened++
		piece := bytes.NewReader(content[from:min(from+1000, int64(len(content)))])
		switch opened % 4 {
		case 0:
			closed++
			return nil, errors.New("no connection")
		case 1:
			return body{piece, &closed}, nil // ends early
		case 2:
			return body{iotest.DataErrReader(piece), &closed}, nil
		}
		return body{io.MultiReader(piece, iotest.ErrReader(io.ErrUnexpectedEOF)), &closed}, nil
	}}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v, want the %d bytes of the content", len(got), err, len(content))
	}
	if err := r.Close(); err != nil || closed != opened || opened < 30 {
		t.Errorf("opened %d times and closed %d times, %v, want the same number, at least 30", opened, closed, err)
	}
}

type body struct {
	io.Reader
	closed *int
}

func (b body) Close() error { *b.closed++; return nil }

func TestResumeGivesUp(t *testing.T) {
	gone := api.Errorf(api.CodeNotFound, "gone")
	for name, c := range map[string]struct {
		err   error
		code  api.Code
		tries int
	}{
		"an answer that stays": {gone, api.CodeNotFound, 1},
		"a node that is away":  {errors.New("no route"), api.CodeUnavailable, resumeTries},
		"one that says so":     {api.Errorf(api.CodeUnavailable, "busy"), api.CodeUnavailable, resumeTries},
	} {
		tries := 0
		r := &resume{ctx: t.Context(), size: 1, pause: time.Microsecond, open: func(context.Context, int64) (io.ReadCloser, error) {
			tries++
			return nil, c.err
		}}
		if _, err := io.ReadAll(r); api.CodeOf(err) != c.code || !errors.Is(err, c.err) || tries != c.tries {
			t.Errorf("%s: error = %v after %d attempts, want code %q after %d", name, err, tries, c.code, c.tries)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := Resume(ctx, 1, func(context.Context, int64) (io.ReadCloser, error) { cancel(); return nil, errors.New("x") })
	if _, err := io.ReadAll(r); !errors.Is(err, context.Canceled) {
		t.Errorf("read with a canceled context = %v, want context.Canceled", err)
	}
}
