package main

import (
	"net/http"
	"testing"
	"time"
)

func TestOffset(t *testing.T) {
	at := time.Date(2026, 11, 28, 6, 0, 10, 0, time.UTC)
	date := at.Format(http.TimeFormat)
	for _, x := range []struct {
		began, ended time.Duration
		want         time.Duration
	}{
		{500 * time.Millisecond, 500 * time.Millisecond, 0},
		{0, time.Second, 0},
		{time.Hour + 500*time.Millisecond, time.Hour + 500*time.Millisecond, time.Hour},
		{-time.Minute + 500*time.Millisecond, -time.Minute + 500*time.Millisecond, -time.Minute},
	} {
		if got, err := offset(date, at.Add(x.began), at.Add(x.ended)); err != nil || got != x.want {
			t.Errorf("offset of a request from %v to %v after the date = %v, %v, want %v", x.began, x.ended, got, err, x.want)
		}
	}
	if got, err := offset("noon", at, at); err == nil {
		t.Errorf("offset from an invalid date = %v, want an error", got)
	}
}
