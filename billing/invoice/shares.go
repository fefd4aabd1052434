package invoice

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// shares settles what of the GPU time of an hour was reserved. A reserved share of a
// card has a price of its own, whether it is used or not; the time that it gives is
// not paid for a second time, and time beyond it is. So the use of an hour is held
// back until the next one begins. Without a price for the share, as in books of
// before there was one, all GPU time is paid for and the share is not.
type shares struct{ hour []api.Use }

// nanosOfShare is the time on a card that a hundredth of it gives in a second.
const nanosOfShare = 1_000_000_000 / 100

// add use, and hand on that of the hour before.
func (s *shares) add(u api.Use, book tariff.Book, rate func(api.Use) error) error {
	if !book.Meters(api.MeterGPUShare) {
		if u.Meter == api.MeterGPUShare {
			return nil
		}
		return rate(u)
	}
	if len(s.hour) > 0 {
		last := s.hour[len(s.hour)-1]
		if last.Compare(u) >= 0 {
			return api.Errorf(api.CodeInvalid, "usage of meter %s, resource %s, hour %s is out of order", u.Meter, u.Resource, u.Hour)
		}
		if !last.Hour.Equal(u.Hour) {
			if err := s.flush(book, rate); err != nil {
				return err
			}
		}
	}
	s.hour = append(s.hour, u)
	return nil
}

// reservation is whose share it is, and of what.
type reservation struct {
	project, resource string
	of                api.PriceSelector // with the tier
}

// flush hands on what is held back.
func (s *shares) flush(book tariff.Book, rate func(api.Use) error) error {
	hour := s.hour
	s.hour = nil
	var left map[reservation]int64
	for _, u := range hour {
		if u.Meter == api.MeterGPUShare && book.Priced(u.Meter, u.Attributes, u.Hour) {
			if left == nil {
				left = map[reservation]int64{}
			}
			// The share of a card is at most all of it: an hour has room to spare.
			left[reservation{u.Project, u.Resource, u.Attributes}] += min(u.Quantity, maxShare) * nanosOfShare
		}
	}
	for _, u := range hour {
		if u.Meter == api.MeterGPUShare && !book.Priced(u.Meter, u.Attributes, u.Hour) {
			continue
		}
		if tier, is := api.TierOfMeter(u.Meter); is && left != nil {
			key := reservation{u.Project, u.Resource, u.Attributes}
			key.of.Tier = string(tier)
			paid := min(u.Quantity, left[key])
			left[key] -= paid
			u.Quantity -= paid
		}
		if err := rate(u); err != nil {
			return err
		}
	}
	return nil
}

// maxShare-seconds that count of an hour, far beyond what a node can reserve.
const maxShare = 1 << 39

func (s shares) fork() shares { return shares{slices.Clone(s.hour)} }
