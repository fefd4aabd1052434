package api_test

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func TestDisk(t *testing.T) {
	for name, c := range map[string]struct {
		spec  api.DiskSpec
		field string // empty: the spec is valid
	}{
		"unused":           {api.DiskSpec{}, ""},
		"Ceph":             {api.DiskSpec{Use: api.DiskCeph, Wipe: true}, ""},
		"a pool":           {api.DiskSpec{Use: api.DiskLocal, Pool: "fast-1"}, ""},
		"an unknown use":   {api.DiskSpec{Use: "swap"}, "spec.use"},
		"Ceph with a pool": {api.DiskSpec{Use: api.DiskCeph, Pool: "fast"}, "spec.pool"},
		"without a name":   {api.DiskSpec{Use: api.DiskLocal}, "spec.pool"},
		"a reserved name":  {api.DiskSpec{Use: api.DiskLocal, Pool: api.PoolLocal}, "spec.pool"},
		"no name":          {api.DiskSpec{Use: api.DiskLocal, Pool: "../x"}, "spec.pool"},
	} {
		wantField(t, name, api.ValidateDisk(c.spec), c.field)
	}
	pool := api.DiskSpec{Use: api.DiskLocal, Pool: "fast"}
	for name, c := range map[string]struct {
		old, now api.DiskSpec
		field    string
	}{
		"taken":         {api.DiskSpec{}, pool, ""},
		"given back":    {pool, api.DiskSpec{}, ""},
		"the same":      {pool, pool, ""},
		"renamed":       {pool, api.DiskSpec{Use: api.DiskLocal, Pool: "other"}, "spec.pool"},
		"pool to Ceph":  {pool, api.DiskSpec{Use: api.DiskCeph}, "spec.use"},
		"Ceph to local": {api.DiskSpec{Use: api.DiskCeph}, pool, "spec.use"},
	} {
		wantField(t, name, api.ChangeDisk(c.old, c.now), c.field)
	}
}

func wantField(t *testing.T, name string, err error, field string) {
	t.Helper()
	var e *api.Error
	if (err == nil) != (field == "") || err != nil && (!errors.As(err, &e) || e.Field != field) {
		t.Errorf("%s: got %v, want an error at %q", name, err, field)
	}
}
