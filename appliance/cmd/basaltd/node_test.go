package main

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func TestKeepRecords(t *testing.T) {
	for days, ok := range map[int]bool{-1: false, 0: false, 61: false, 62: true, 400: true, 36_500: true, 36_501: false} {
		keep, err := keepRecords(days)
		if (err == nil) != ok || ok && (keep != time.Duration(days)*24*time.Hour || keep < api.MinKeepRecords) {
			t.Errorf("keepRecords(%d) = %s, error %v, want success = %t", days, keep, err, ok)
		}
	}
}
