package libvirt

import (
	"context"
	"slices"
	"strings"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// usageGroups and usageFlags request all of Usage, without waiting for domains
// with an operation in progress.
const (
	usageGroups = lv.DOMAIN_STATS_STATE | lv.DOMAIN_STATS_CPU_TOTAL | lv.DOMAIN_STATS_BALLOON | lv.DOMAIN_STATS_BLOCK | lv.DOMAIN_STATS_INTERFACE
	usageFlags  = lv.CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE | lv.CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
)

// Usage implements hypervisor.Driver.
func (d *Driver) Usage(ctx context.Context) ([]hypervisor.Usage, error) {
	return call(ctx, d, "", func(s *session) ([]hypervisor.Usage, error) {
		if !d.usage.CompareAndSwap(false, true) {
			return nil, api.Errorf(api.CodeUnavailable, "libvirtd did not respond to the last query of domain statistics")
		}
		defer d.usage.Store(false)
		return d.usages(s)
	})
}

func (d *Driver) usages(s *session) ([]hypervisor.Usage, error) {
	found, err := s.GetAllDomainStats(nil, usageGroups, usageFlags)
	if err != nil {
		return nil, err
	}
	var all []hypervisor.Usage
	for i := range found {
		dom := found[i].Domain
		if name, err := dom.GetName(); err == nil {
			if _, ok := idOf(name); ok {
				// A domain that was removed meanwhile, or is another node's, is not an
				// error.
				if o, err := d.ownMark(dom); err == nil {
					if u, ok := usage(o.ID, &found[i]); ok {
						all = append(all, u)
					}
				}
			}
		}
		_ = dom.Free()
	}
	slices.SortFunc(all, func(a, b hypervisor.Usage) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all, nil
}

// usage converts the statistics of a domain; false if libvirt did not return
// all of them.
func usage(id api.InstanceID, s *lv.DomainStats) (u hypervisor.Usage, ok bool) {
	if s.Cpu == nil || !s.Cpu.TimeSet || s.Balloon == nil || !s.Balloon.CurrentSet || !s.Balloon.RssSet {
		return u, false
	}
	u = hypervisor.Usage{ID: id, CPUNanos: s.Cpu.Time, MemoryBytes: s.Balloon.Current << 10, ResidentBytes: s.Balloon.Rss << 10}
	for _, b := range s.Block {
		if !b.RdBytesSet || !b.WrBytesSet {
			return u, false
		}
		u.ReadBytes += b.RdBytes
		u.WriteBytes += b.WrBytes
		u.ReadOps += b.RdReqs
		u.WriteOps += b.WrReqs
	}
	for _, n := range s.Net { // a card whose tap was removed has no counters
		u.ReceivedBytes += n.RxBytes
		u.SentBytes += n.TxBytes
	}
	return u, true
}
