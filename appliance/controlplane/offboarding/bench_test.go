package offboarding_test

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offboarding"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// BenchmarkRun measures the processor time of waiting for services to end, on the real
// store, with n services of which none has ended.
//
//	none    the store alone, in 2 s
//	idle    the same with Run
//	begin   the start of Run, which reads all services once
//	list    baseline: one listing of all, as every 2 s without a watch
func BenchmarkRun(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				benchmarkRun(b, n)
			}
		})
	}
}

func benchmarkRun(b *testing.B, n int) {
	opened, err := store.Open(store.Options{Dir: b.TempDir(), NodeID: "node-a"})
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	s := opened
	var cmds []api.Command
	for i := range n {
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindService, ID: fmt.Sprintf("svc-%012d", i), Name: fmt.Sprint("whmcs:", i),
			Data: api.Encode(api.ServiceSpec{Organization: api.OrganizationID(fmt.Sprintf("org-%012d", i))})})
		if len(cmds) == 500 {
			if _, err := s.Apply(b.Context(), api.Batch{Commands: cmds}); err != nil {
				b.Fatal(err)
			}
			cmds = cmds[:0]
		}
	}
	measure := func(name string, f func()) {
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		f()
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		b.ReportMetric(float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano())/1e6, name+"-cpu-ms")
	}
	measure("list", func() {
		if err := offboarding.Sweep(b.Context(), s, time.Now()); err != nil {
			b.Fatal(err)
		}
	})
	const period = 2 * time.Second
	measure("none", func() { time.Sleep(period) })
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	measure("begin", func() {
		log := slog.New(slog.DiscardHandler)
		cache := watchcache.New(s, log, offboarding.Kinds...)
		go func() { _ = cache.Run(ctx) }()
		go func() { offboarding.Run(ctx, cache, s, log); close(done) }()
		time.Sleep(period)
	})
	measure("idle", func() { time.Sleep(period) })
	cancel()
	<-done
}
