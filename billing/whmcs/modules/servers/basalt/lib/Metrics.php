<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

use WHMCS\UsageBilling\Contracts\Metrics\MetricInterface;
use WHMCS\UsageBilling\Contracts\Metrics\ProviderInterface;
use WHMCS\UsageBilling\Metrics\Metric;
use WHMCS\UsageBilling\Metrics\Units\FloatingPoint;
use WHMCS\UsageBilling\Metrics\Usage;

/**
 * The usage of services in this month. Each total begins with the month in WHMCS's own
 * time zone and only grows, so that WHMCS may poll it at any time, and the next poll
 * makes up for a missed one. Usage in the last hours of a month (Server::$carry) counts
 * in the next month: WHMCS keeps the last total that it has read in a month, which is
 * then complete.
 */
final class Metrics implements ProviderInterface
{
    private const HOUR = 3600.0;
    private const GIB = 1073741824.0;

    /** Metric by basaltd's meter: name, title, and how many of the meter's units one is. */
    public const METERS = [
        'gpu-share-seconds' => ['gpu_reserved_hours', 'GPU hours, reserved', self::HOUR * 100],
        'gpu-nanoseconds' => ['gpu_hours', 'GPU hours', self::HOUR * 1e9],
        'gpu-premium-nanoseconds' => ['gpu_premium_hours', 'GPU hours, premium', self::HOUR * 1e9],
        'gpu-basic-nanoseconds' => ['gpu_basic_hours', 'GPU hours, basic', self::HOUR * 1e9],
        'vram-byte-seconds' => ['vram_gib_hours', 'VRAM GiB hours', self::HOUR * self::GIB],
        'vcpu-seconds' => ['vcpu_hours', 'vCPU hours', self::HOUR],
        'memory-byte-seconds' => ['memory_gib_hours', 'Memory GiB hours', self::HOUR * self::GIB],
        'volume-byte-seconds' => ['disk_gib_hours', 'Disk GiB hours', self::HOUR * self::GIB],
        'snapshot-byte-seconds' => ['snapshot_gib_hours', 'Snapshot GiB hours', self::HOUR * self::GIB],
        'address-seconds' => ['address_hours', 'Floating IP hours', self::HOUR],
        'egress-bytes' => ['egress_gib', 'Egress GiB', self::GIB],
    ];

    /** @param array<string,mixed> $params */
    public function __construct(private readonly array $params)
    {
    }

    /** @return array<int,MetricInterface> also without a server, on a product's page */
    public function metrics(): array
    {
        $out = [];
        foreach (self::METERS as [$name, $words, $_]) {
            $out[] = new Metric($name, Lang::text($name, $words), MetricInterface::TYPE_PERIOD_MONTH, new FloatingPoint(Lang::text($name, $words)));
        }
        return $out;
    }

    /** @return array<string,array<int,MetricInterface>> by the services' user names */
    public function usage(): array
    {
        $out = [];
        foreach ($this->read([]) as $tenant => $metrics) {
            $out[$tenant] = $metrics;
        }
        return $out;
    }

    /**
     * @param mixed $tenant
     * @return array<int,MetricInterface>
     */
    public function tenantUsage($tenant): array
    {
        $service = Order::serviceOf((string) $tenant);
        if ($service === 0) {
            return [];
        }
        $name = Server::of($this->params)->installation . ':' . $service;
        foreach ($this->read(['service' => $name]) as $found => $metrics) {
            if ($found === $tenant) {
                return $metrics;
            }
        }
        return [];
    }

    /**
     * @param array<string,string> $query
     * @return \Generator<string,array<int,MetricInterface>>
     */
    private function read(array $query): \Generator
    {
        $server = Server::of($this->params);
        $client = new Client($server);
        $query += ['installation' => $server->installation, 'timeZone' => date_default_timezone_get(), 'carryHours' => (string) $server->carry];
        $continue = '';
        do {
            $page = $client->call('Usage', 'GET', '/v1/service-usage?' . http_build_query($query + ($continue !== '' ? ['continue' => $continue] : [])), null, 60);
            foreach ($page['items'] ?? [] as $item) {
                $service = substr((string) $item['name'], strlen($server->installation) + 1);
                if (preg_match('/^[0-9]{1,15}$/', $service)) {
                    yield Order::username((int) $service) => $this->filled($item['totals'] ?? [], $page);
                }
            }
            $continue = (string) ($page['continue'] ?? '');
        } while ($continue !== '');
    }

    /**
     * @param array<int,array<string,mixed>> $totals
     * @param array<string,mixed> $page
     * @return array<int,MetricInterface>
     */
    private function filled(array $totals, array $page): array
    {
        $of = array_column($totals, 'quantity', 'meter');
        $out = [];
        foreach (array_keys(self::METERS) as $i => $meter) {
            // Rounded down, so that a growing total never decreases.
            $value = floor((float) ($of[$meter] ?? 0) / self::METERS[$meter][2] * 1e6) / 1e6;
            $out[] = $this->metrics()[$i]->withUsage(
                new Usage($value, self::moment($page['readAt']), self::moment($page['from']), self::moment($page['to'], -1))
            );
        }
        return $out;
    }

    private static function moment(string $at, int $seconds = 0): mixed
    {
        $stamp = (new \DateTimeImmutable($at))->getTimestamp() + $seconds;
        $zone = date_default_timezone_get();
        return class_exists(\WHMCS\Carbon::class) ? \WHMCS\Carbon::createFromTimestamp($stamp, $zone) : $stamp;
    }
}
