package servertest

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Apps is a fake app gateway, whose links contain their holder.
type Apps struct{}

// Domain implements server.AppGateway.
func (Apps) Domain() string { return "apps.example.com" }

// Address implements server.AppGateway.
func (Apps) Address(instance api.InstanceID, port uint16) string {
	return fmt.Sprintf("https://%d-%s.apps.example.com/", port, instance[len("ins-"):])
}

// Link implements server.AppGateway.
func (a Apps) Link(_ context.Context, holder string, instance api.InstanceID, port uint16) (string, time.Time, error) {
	return a.Address(instance, port) + ".basalt/enter#" + holder, time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC), nil
}
