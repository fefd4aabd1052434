package api

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// bad fails the test unless err has code CodeInvalid at field; an empty field means no
// error.
func bad(t *testing.T, what string, err error, field string) {
	t.Helper()
	if field == "" {
		if err != nil {
			t.Errorf("%s: error %v, want none", what, err)
		}
		return
	}
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeInvalid || e.Field != field {
		t.Errorf("%s: error %v, want one with code %s at %s", what, err, CodeInvalid, field)
	}
}

func TestNamesAndLabels(t *testing.T) {
	for name, field := range map[string]string{
		"a": "", "a-b-0": "", strings.Repeat("a", 63): "", "": "meta.name", "A": "meta.name", "-a": "meta.name", "a-": "meta.name",
		"a_b": "meta.name", "a\n": "meta.name", strings.Repeat("a", 64): "meta.name", "ins-0123456789ab": "meta.name", "ins-0123456789a": "",
	} {
		bad(t, name, ValidateName(name), field)
	}
	bad(t, "labels", ValidateLabels(map[string]string{"a": "b", "c": ""}), "")
	bad(t, "empty key", ValidateLabels(map[string]string{"": "b"}), "meta.labels")
	bad(t, "control", ValidateLabels(map[string]string{"a": "\x1b"}), "meta.labels")
	bad(t, "long", ValidateLabels(map[string]string{"a": strings.Repeat("x", 257)}), "meta.labels")
}

func TestInstanceSpecs(t *testing.T) {
	good := InstanceSpec{Flavor: "f", Image: "i", RootBytes: 1 << 30, SSHKeys: []string{"ssh-ed25519 AAAA me"}, Vgpu: &VGPUSpec{VramBytes: 1 << 30, SharePercent: 25}}
	for field, spoil := range map[string]func(*InstanceSpec){
		"":                       func(*InstanceSpec) {},
		"spec.flavor":            func(s *InstanceSpec) { s.Flavor = "" },
		"spec.image":             func(s *InstanceSpec) { s.Image = "" },
		"spec.media":             func(s *InstanceSpec) { s.Media = make([]ImageID, 3) },
		"spec.bootFrom":          func(s *InstanceSpec) { s.BootFrom = "network" },
		"spec.ephemeral":         func(s *InstanceSpec) { s.Image, s.Media, s.Ephemeral = "", []ImageID{"i"}, true },
		"spec.rootBytes":         func(s *InstanceSpec) { s.RootBytes = 1<<30 + 1 },
		"spec.power":             func(s *InstanceSpec) { s.Power = "On" },
		"spec.restarts":          func(s *InstanceSpec) { s.Restarts = -1 },
		"spec.userData":          func(s *InstanceSpec) { s.UserData = strings.Repeat("x", 65537) },
		"spec.sshKeys":           func(s *InstanceSpec) { s.SSHKeys = []string{"ssh-rsa AAAA\nroot: x"} },
		"spec.vgpu.vramBytes":    func(s *InstanceSpec) { s.Vgpu = &VGPUSpec{} },
		"spec.vgpu.sharePercent": func(s *InstanceSpec) { s.Vgpu = &VGPUSpec{VramBytes: 1 << 30, SharePercent: 101} },
		"spec.vgpu.pool":         func(s *InstanceSpec) { s.Vgpu = &VGPUSpec{VramBytes: 1 << 30, Pool: "../x"} },
	} {
		s := good
		spoil(&s)
		bad(t, "instance "+field, ValidateInstance(DefaultInstance(s)), field)
	}
	blank := good
	blank.Image, blank.Media = "", []ImageID{""} // its media are ejected
	bad(t, "an instance without an image", ValidateInstance(DefaultInstance(blank)), "")
	if s := DefaultInstance(good); s.Power != PowerRunning || s.Vgpu.Pool != DefaultPool || good.Vgpu.Pool != "" {
		t.Errorf("DefaultInstance = %+v, and its argument afterwards has vGPU %+v; want the defaults, and an unchanged argument", s, good.Vgpu)
	}
}

func TestOtherSpecs(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		what, field string
		err         error
	}{
		{"flavor", "", ValidateFlavor(FlavorSpec{Vcpus: 1, MemoryBytes: 64 << 20})},
		{"no vcpus", "spec.vcpus", ValidateFlavor(FlavorSpec{MemoryBytes: 64 << 20})},
		{"little memory", "spec.memoryBytes", ValidateFlavor(FlavorSpec{Vcpus: 1, MemoryBytes: 1})},
		{"odd memory", "spec.memoryBytes", ValidateFlavor(FlavorSpec{Vcpus: 1, MemoryBytes: 64<<20 + 512})},
		{"negative root", "spec.rootBytes", ValidateFlavor(FlavorSpec{Vcpus: 1, MemoryBytes: 64 << 20, RootBytes: -1})},
		{"image", "", ValidateImage(ImageSpec{Format: "raw", URL: "https://a/b", Sha256: strings.Repeat("aB", 32)})},
		{"disc", "", ValidateImage(ImageSpec{Format: "iso"})},
		{"image format", "spec.format", ValidateImage(ImageSpec{Format: "vmdk"})},
		{"image sum", "spec.sha256", ValidateImage(ImageSpec{Format: "raw", Sha256: "12"})},
		{"file URL", "spec.url", ValidateImage(ImageSpec{Format: "raw", URL: "file:///etc/shadow"})},
		{"volume", "", ValidateVolume(VolumeSpec{SizeBytes: 1 << 20})},
		{"sizeless volume", "spec.sizeBytes", ValidateVolume(VolumeSpec{})},
		{"shrinking", "spec.sizeBytes", ChangeVolume(VolumeSpec{SizeBytes: 2 << 20}, VolumeSpec{SizeBytes: 1 << 20})},
		{"operator", "", ValidateAPIKey(Meta{}, APIKeySpec{Role: RoleOperator}, now)},
		{"role", "spec.role", ValidateAPIKey(Meta{}, APIKeySpec{Role: "root"}, now)},
		{"scoped operator", "meta.organization", ValidateAPIKey(Meta{Organization: "o"}, APIKeySpec{Role: RoleOperator}, now)},
		{"admin of nothing", "meta.organization", ValidateAPIKey(Meta{}, APIKeySpec{Role: RoleAdmin}, now)},
		{"admin of a project", "meta.project", ValidateAPIKey(Meta{Organization: "o", Project: "p"}, APIKeySpec{Role: RoleAdmin}, now)},
		{"member of nothing", "meta.project", ValidateAPIKey(Meta{Organization: "o"}, APIKeySpec{Role: RoleMember}, now)},
		{"expired", "spec.expiresAt", ValidateAPIKey(Meta{}, APIKeySpec{Role: RoleOperator, ExpiresAt: &now}, now)},
		{"book", "", ValidatePriceBook(PriceBookSpec{Currency: "EUR", Prices: []Price{{Meter: MeterGPU, PriceMicros: 1, Per: 1}}})},
		{"currency", "spec.currency", ValidatePriceBook(PriceBookSpec{Currency: "eur"})},
		{"meter", "spec.prices[0].meter", ValidatePriceBook(PriceBookSpec{Currency: "EUR", Prices: []Price{{Meter: "x", Per: 1}}})},
		{"per 0", "spec.prices[0].per", ValidatePriceBook(PriceBookSpec{Currency: "EUR", Prices: []Price{{Meter: MeterGPU}}})},
		{"negative price", "spec.prices[0].priceMicros", ValidatePriceBook(PriceBookSpec{Currency: "EUR", Prices: []Price{{Meter: MeterGPU, PriceMicros: -1, Per: 1}}})},
		{"two prices", "spec.prices[1].meter", ValidatePriceBook(PriceBookSpec{Currency: "EUR", Prices: []Price{{Meter: MeterGPU, Per: 1}, {Meter: MeterGPU, Per: 1}}})},
		{"tiers", "", book(func(b *PriceBookSpec) { b.Prices[0].Tiers = []PriceTier{{UpTo: 1}, {UpTo: 2, PriceMicros: 5}} })},
		{"next price", "", book(func(b *PriceBookSpec) { b.Prices = append(b.Prices, Price{Meter: MeterGPU, Per: 1, From: bookHour}) })},
		{"half past", "spec.prices[0].from", book(func(b *PriceBookSpec) { b.Prices[0].From = bookHour.Add(30 * time.Minute) })},
		{"tiers backwards", "spec.prices[0].tiers[1].upTo", book(func(b *PriceBookSpec) { b.Prices[0].Tiers = []PriceTier{{UpTo: 2}, {UpTo: 2}} })},
		{"commitment", "spec.commitments[0].quantity", book(func(b *PriceBookSpec) { b.Commitments = []Commitment{{Meter: MeterGPU, Per: 1}} })},
		{"commitment's end", "spec.commitments[0].until", book(func(b *PriceBookSpec) {
			b.Commitments = []Commitment{{Meter: MeterGPU, Per: 1, Quantity: 1, From: bookHour, Until: bookHour}}
		})},
		{"discount", "spec.discounts[0].basisPoints", book(func(b *PriceBookSpec) { b.Discounts = []Discount{{BasisPoints: 10_001}} })},
		{"discount's meter", "spec.discounts[0].meters[0]", book(func(b *PriceBookSpec) { b.Discounts = []Discount{{Meters: []Meter{"x"}, BasisPoints: 1}} })},
		{"minimum", "spec.minimumMicros", book(func(b *PriceBookSpec) { b.MinimumMicros = -1 })},
		{"pool", "", ValidateGPUPool(DefaultGPUPool(GPUPoolSpec{}))},
		{"pool mode", "spec.mode", ValidateGPUPool(GPUPoolSpec{Mode: "x"})},
		{"pool overcommit", "", ValidateGPUPool(GPUPoolSpec{Mode: ModeTimeSliced, VramOvercommitPercent: 400})},
		{"pool below its cards", "spec.vramOvercommitPercent", ValidateGPUPool(GPUPoolSpec{Mode: ModeTimeSliced, VramOvercommitPercent: 99})},
		{"pool too far", "spec.vramOvercommitPercent", ValidateGPUPool(GPUPoolSpec{Mode: ModeTimeSliced, VramOvercommitPercent: 401})},
		{"gpu pool", "spec.pool", ValidateGPU(GPUSpec{Pool: "A"})},
		{"organization", "spec.displayName", ValidateOrganization(OrganizationSpec{DisplayName: "a\x00"})},
		{"project", "", ValidateProject(ProjectSpec{DisplayName: "Ünïcode"})},
	} {
		bad(t, c.what, c.err, c.field)
	}
}

func TestIDs(t *testing.T) {
	for _, kind := range []Kind{KindOrganization, KindProject, KindAPIKey, KindNode, KindGPU, KindGPUPool, KindFlavor, KindImage,
		KindVolume, KindInstance, KindUsageRecord, KindInvoice, KindCreditNote, KindPayment, KindBudget, KindPriceBook} {
		if id := NewID(kind, []byte{0, 1, 2, 3, 4, 0xff}); !LooksLikeID(id) || !strings.HasSuffix(id, "-0001020304ff") {
			t.Errorf("NewID(%s) = %s, want an ID that ends with -0001020304ff", kind, id)
		}
	}
}

// TestPricesOfEveryMeter checks that a price book has at most one price for each meter,
// and no absurd one.
func TestPricesOfEveryMeter(t *testing.T) {
	var all PriceBookSpec
	all.Currency = "EUR"
	for _, m := range Meters() {
		all.Prices = append(all.Prices, Price{Meter: m, PriceMicros: 1, Per: 1})
		for _, bad := range []Price{{Meter: m, PriceMicros: -1, Per: 1}, {Meter: m, PriceMicros: 1, Per: 0},
			{Meter: m, PriceMicros: maxPriceMicros + 1, Per: 1}, {Meter: m + "x", PriceMicros: 1, Per: 1}} {
			if ValidatePriceBook(PriceBookSpec{Currency: "EUR", Prices: []Price{bad}}) == nil {
				t.Errorf("price %+v is accepted, want an error", bad)
			}
		}
	}
	if err := ValidatePriceBook(all); err != nil {
		t.Error(err)
	}
	all.Prices = append(all.Prices, all.Prices[0])
	if ValidatePriceBook(all) == nil {
		t.Error("two prices for one meter are accepted, want an error")
	}
}

var bookHour = time.Date(2026, 3, 1, 5, 0, 0, 0, time.UTC)

// book validates a valid price book after a change.
func book(change func(*PriceBookSpec)) error {
	b := PriceBookSpec{Currency: "EUR", Prices: []Price{{Meter: MeterGPU, PriceMicros: 1, Per: 1}}}
	change(&b)
	return ValidatePriceBook(b)
}
