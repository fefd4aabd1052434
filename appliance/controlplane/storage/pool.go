package storage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// PoolInCeph is a storage pool of the cluster and its pool in Ceph.
type PoolInCeph struct {
	Name string // of the storage pool: api.PoolCeph, or that of a device class
	deploy.Pool
	Leaving, Drop bool
}

// AllPools returns the cluster's pools; the first is api.PoolCeph.
func (f Bootstrap) AllPools() []PoolInCeph {
	all := []PoolInCeph{{Name: api.PoolCeph, Pool: deploy.Pool{Name: Pool, Replicas: f.Replicas, FailureDomain: f.FailureDomain, Class: f.Class}}}
	for _, p := range f.Pools {
		all = append(all, PoolInCeph{
			Name:    api.CephPool{DeviceClass: api.DeviceClass(p.Class)}.PoolName(),
			Pool:    deploy.Pool{Name: Pool + "-" + p.Class, Replicas: p.Replicas, FailureDomain: f.FailureDomain, Class: p.Class},
			Leaving: p.Leaving, Drop: p.Drop,
		})
	}
	return all
}

// classPools returns the additional pools that are to follow f's. A pool that is not
// wanted any more stays until it is empty.
func (f Bootstrap) classPools(s observation) []ClassPool {
	all := map[string]ClassPool{}
	for _, p := range f.Pools {
		p.Leaving = true
		all[p.Class] = p
	}
	for _, want := range s.cluster.Spec.Pools {
		class := string(want.DeviceClass)
		if all[class].Drop {
			continue // it is added again when it has been deleted
		}
		all[class] = ClassPool{Class: class, Replicas: int(cmp.Or(want.Replicas, int64(f.Replicas)))}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b ClassPool) int { return strings.Compare(a.Class, b.Class) })
}

// dropped returns the pools without those that have been deleted, and decides which
// ones are deleted now.
func (f Bootstrap) dropped(s observation) []ClassPool {
	var out []ClassPool
	for _, p := range f.Pools {
		name := Pool + "-" + p.Class
		exists := s.survey == nil || slices.ContainsFunc(s.survey.Cluster.Pools, func(o deploy.PoolState) bool { return o.Name == name })
		images, known := s.images[name]
		switch {
		case p.Leaving && !exists:
			continue
		case p.Leaving && known && images == 0:
			p.Drop = true
		}
		out = append(out, p)
	}
	return out
}

// poolStatus returns the status of one pool.
func poolStatus(f Bootstrap, s observation, p PoolInCeph) api.CephPoolStatus {
	v := *s.survey
	st := api.CephPoolStatus{
		Name: p.Name, DeviceClass: api.DeviceClass(p.Class), Replicas: int64(p.Replicas), Domains: int64(copies(f, s, p.Class)),
		UsedBytes: v.Usage[p.Pool.Name].UsedBytes, FreeBytes: v.Usage[p.Pool.Name].FreeBytes,
	}
	at := slices.IndexFunc(v.Cluster.Pools, func(o deploy.PoolState) bool { return o.Name == p.Pool.Name })
	exists := at >= 0 && v.Cluster.Pools[at].Enabled
	applied := exists && v.Cluster.Pools[at].Rule == p.Rule() && v.Cluster.Pools[at].Replicas == p.Replicas
	st.Ready = applied && !p.Leaving
	switch {
	case p.Leaving && s.images[p.Pool.Name] > 0:
		st.Reason = fmt.Sprintf("it is being removed, and contains %d volumes and images: delete them", s.images[p.Pool.Name])
	case p.Leaving:
		st.Reason = "it is being removed"
	case st.Domains < st.Replicas:
		st.Reason = fmt.Sprintf("%d %s, want at least %d for as many copies", st.Domains, domainWords(f, p.Class), p.Replicas)
	case !exists:
		st.Reason = "it is being created"
	case !applied:
		st.Reason = "its device class or number of copies is being changed"
	}
	return st
}

// domainWords describes what copies may be stored on.
func domainWords(f Bootstrap, class string) string {
	words := "disks"
	if f.FailureDomain == string(api.DomainHost) {
		words = "nodes with disks"
	}
	if class != "" {
		words += " of device class " + class
	}
	return words
}

// copies returns the number of copies of a pool that can be on different disks or
// nodes.
func copies(f Bootstrap, s observation, class string) int {
	domains := map[string]bool{}
	for _, o := range f.OSDs {
		switch {
		case o.Leaving || class != "" && osdClass(o, s) != class:
		case f.FailureDomain == string(api.DomainOSD):
			domains[o.UUID] = true
		default:
			domains[string(o.Node)] = true
		}
	}
	return len(domains)
}

// osdClass returns the device class that the OSD has or will have.
func osdClass(o OSD, s observation) string {
	class := o.Class
	if s.survey != nil {
		if x := OSDOf(s.survey.Cluster, o.UUID); x != nil {
			class = cmp.Or(class, x.Class)
		}
	}
	return class
}
