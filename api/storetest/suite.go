package storetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// wait limits everything that the suite waits for.
const wait = 60 * time.Second

// Run runs the conformance suite. newStore returns an empty store and registers its
// clean-up with t.Cleanup.
func Run(t *testing.T, newStore func(t *testing.T) Store) {
	cases := []struct {
		name string
		test func(*tester)
	}{
		{"PutSpecMakesAndChanges", testPutSpec},
		{"ExpectIsChecked", testExpect},
		{"NamesAreUnique", testNames},
		{"WhatChangesNothing", testNoChange},
		{"BatchIsAllOrNothing", testAllOrNothing},
		{"BatchSeesItself", testBatchSeesItself},
		{"BatchIDMakesRetriesHarmless", testBatchID},
		{"Try", testTry},
		{"TimesDoNotGoBack", testTimes},
		{"AssignAndReport", testAssignReport},
		{"ReportMakesNodesAndGPUs", testReportMakes},
		{"DeleteWithoutFinalizers", testDelete},
		{"DeleteWaitsForFinalizers", testFinalizers},
		{"RecordOnce", testRecord},
		{"RecordsThatAreNone", testBadRecords},
		{"RecordsInOrder", testRecordsInOrder},
		{"RecordsPages", testRecordsPages},
		{"RecordsExpire", testRecordsExpire},
		{"RecordsExpireInParts", testRecordsExpireInParts},
		{"UseIsTheSumOfRecords", testUse},
		{"UseSinceSomebodyLooked", testUseMark},
		{"UsePages", testUsePages},
		{"UseInAnyOrder", testUseInAnyOrder},
		{"Touched", testTouched},
		{"BadCommands", testBadCommands},
		{"Claims", testClaims},
		{"ClaimsOfABatch", testClaimsOfABatch},
		{"ClaimsNeverTwice", testClaimsNeverTwice},
		{"Quotas", testQuotas},
		{"QuotasOfABatch", testQuotasOfABatch},
		{"KindQuotas", testKindQuotas},
		{"QuotasNeverPassed", testQuotasNeverPassed},
		{"References", testReferences},
		{"ReferencesOfABatch", testReferencesOfABatch},
		{"ReferencesOfKinds", testReferencesOfKinds},
		{"ReferencesNeverDangle", testReferencesNeverDangle},
		{"AuditTrail", testAuditTrail},
		{"AuditFilters", testAuditFilters},
		{"Events", testEvents},
		{"History", testHistory},
		{"ListFilters", testListFilters},
		{"ListSearch", testListSearch},
		{"ListPages", testListPages},
		{"ResultsAreNotShared", testResultsNotShared},
		{"WatchFromNow", testWatchFromNow},
		{"WatchFromZero", testWatchFromZero},
		{"WatchFromTheFuture", testWatchFromFuture},
		{"WatchWithoutGaps", testWatchWithoutGaps},
		{"WatchOfSomeKinds", testWatchKinds},
		{"WatchEndsWithItsContext", testWatchEnds},
		{"WatcherThatDoesNotRead", testDeafWatcher},
		{"ConcurrentWriters", testConcurrentWriters},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := patience.Context(t.Context(), wait)
			t.Cleanup(cancel)
			c.test(&tester{T: t, s: newStore(t), ctx: ctx})
		})
	}
}

// tester is the store of one test case, with short helper methods.
type tester struct {
	*testing.T
	s   Store
	ctx context.Context
}

// at returns the time of the n-th batch.
func at(n int) time.Time { return time.Date(2026, 3, 1, 12, 0, n, 0, time.UTC) }

func (t *tester) apply(n int, cmds ...api.Command) ([]api.Object, error) {
	return t.s.Apply(t.ctx, api.Batch{At: at(n), Commands: cmds})
}

// must applies one command, which has to succeed.
func (t *tester) must(n int, c api.Command) api.Object {
	t.Helper()
	out, err := t.apply(n, c)
	if err != nil {
		t.Fatalf("op %d on %s %s: %v", c.Op, c.Kind, c.ID, err)
	}
	if len(out) != 1 {
		t.Fatalf("op %d on %s %s returned %d objects, want 1", c.Op, c.Kind, c.ID, len(out))
	}
	return out[0]
}

// fails applies one command, which has to fail and leave the revision unchanged.
func (t *tester) fails(code api.Code, c api.Command) {
	t.Helper()
	before := t.s.Revision()
	_, err := t.apply(99, c)
	t.wantCode(code, err)
	if r := t.s.Revision(); r != before {
		t.Errorf("a failed command moved the revision from %d to %d, want no change", before, r)
	}
}

func (t *tester) wantCode(code api.Code, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want %s", code)
	}
	if got := api.CodeOf(err); got != code {
		t.Fatalf("got error %s (%v), want %s", got, err, code)
	}
}

func (t *tester) get(kind api.Kind, id string) api.Object {
	t.Helper()
	o, err := t.s.Get(t.ctx, kind, id)
	if err != nil {
		t.Fatalf("get %s %s: %v", kind, id, err)
	}
	return o
}

func (t *tester) gone(kind api.Kind, id string) {
	t.Helper()
	_, err := t.s.Get(t.ctx, kind, id)
	t.wantCode(api.CodeNotFound, err)
}

// flavor returns a command that puts a flavor of n vCPUs.
func flavor(id, name string, n int64, expect int64) api.Command {
	return api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: id, Name: name, Expect: expect,
		Data: api.Encode(api.FlavorSpec{Vcpus: n, MemoryBytes: 1 << 30})}
}

func same(t *tester, what string, got, want api.Object) {
	t.Helper()
	a, b := mustJSON(t, got), mustJSON(t, want)
	if a != b {
		t.Errorf("%s:\n got %s\nwant %s", what, a, b)
	}
}

func mustJSON(t *tester, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
