package vhostgpu

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLimitLog(t *testing.T) {
	var out bytes.Buffer
	h := LimitLog(slog.NewTextHandler(&out, nil), 3, 1).WithAttrs([]slog.Attr{slog.String("vgpu", "v")})
	start := time.Unix(1000, 0)
	emit := func(at time.Duration) {
		r := slog.NewRecord(start.Add(at), slog.LevelInfo, "x", 0)
		if err := h.Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		emit(0)
	}
	if n := strings.Count(out.String(), "msg=x"); n != 3 {
		t.Errorf("%d of 10 records passed at once, want 3", n)
	}
	out.Reset()
	emit(1500 * time.Millisecond)
	emit(1600 * time.Millisecond)
	if s := out.String(); strings.Count(s, "msg=x") != 1 || !strings.Contains(s, "leftOut=7") || !strings.Contains(s, "vgpu=v") {
		t.Errorf("log after a second and a half = %q, want one record with 7 left out", s)
	}
}
