<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/**
 * The part of a service that its client sees: its machines, their usage in this month,
 * and its costs by the price book. Each part is optional: if basaltd does not answer, a
 * page without numbers is better than none.
 */
final class Area
{
    private const SECONDS = 5;
    private const MOST_MACHINES = 50;
    private const MOST_PAGES = 5;
    private const MOST_COSTS = 20;

    private readonly string $organization;

    /** @param array<string,mixed> $service */
    public function __construct(private readonly Client $client, private readonly array $service, private readonly string $portal, private readonly int $now)
    {
        $this->organization = (string) ($service['spec']['organization'] ?? '');
    }

    /** @return array<string,mixed> plain text and numbers, which the template escapes */
    public function all(bool $costs): array
    {
        $empty = ['machines' => [], 'use' => [], 'chart' => Chart::of([], ''), 'costs' => null];
        if ($this->organization === '' || !empty($this->service['spec']['terminatedAt'])) {
            return $empty;
        }
        $part = static function (callable $read, mixed $otherwise): mixed {
            try {
                return $read();
            } catch (ApiError) {
                return $otherwise; // it is in the module's log
            }
        };
        [$use, $chart] = $part(fn (): array => $this->use(), [[], $empty['chart']]);
        return ['machines' => $part(fn (): array => $this->machines(), []), 'use' => $use, 'chart' => $chart,
            'costs' => $costs ? $part(fn (): array => $this->costs(), null) : null];
    }

    /** @return array<int,array<string,string>> */
    private function machines(): array
    {
        $page = $this->get('Machines', '/v1/instances', ['limit' => (string) self::MOST_MACHINES]);
        $out = [];
        foreach ($page['items'] ?? [] as $i) {
            $phase = (string) ($i['status']['phase'] ?? '');
            $vram = (int) ($i['spec']['vgpu']['vramBytes'] ?? 0);
            $out[] = [
                'name' => (string) ($i['meta']['name'] ?? ''),
                'phase' => Lang::text("phase_$phase", $phase),
                'vram' => $vram > 0 ? round($vram / 1073741824, 2) . ' GiB' : '',
                'address' => $this->address($i),
                'page' => $this->portal . '/#/instances/' . rawurlencode((string) ($i['meta']['id'] ?? '')),
            ];
        }
        return $out;
    }

    /** @param array<string,mixed> $instance */
    private function address(array $instance): string
    {
        if ((string) ($instance['meta']['id'] ?? '') === (string) ($this->service['spec']['instance'] ?? '-')) {
            return implode(', ', array_map('strval', (array) ($this->service['status']['addresses'] ?? [])));
        }
        foreach ((array) ($instance['status']['networks'] ?? []) as $n) {
            if (is_string($n['address'] ?? null) && $n['address'] !== '') {
                return $n['address'];
            }
        }
        return '';
    }

    /**
     * Returns the usage since the beginning of the month, by UTC days.
     *
     * @return array{array<int,array<string,string>>,array<string,mixed>}
     */
    private function use(): array
    {
        $query = ['from' => gmdate('Y-m-01\T00:00:00\Z', $this->now), 'to' => gmdate('Y-m-d\TH:i:s\Z', $this->now + 1), 'by' => 'day', 'limit' => '1000'];
        $totals = $days = [];
        for ($pages = 0, $continue = ''; $pages < self::MOST_PAGES; $pages++) {
            $page = $this->get('Use', '/v1/usage', $query + ($continue !== '' ? ['continue' => $continue] : []));
            foreach ($page['items'] ?? [] as $u) {
                $meter = (string) ($u['meter'] ?? '');
                $day = (int) gmdate('j', strtotime((string) ($u['from'] ?? '')) ?: $this->now);
                $totals[$meter] = ($totals[$meter] ?? 0.0) + (float) ($u['quantity'] ?? 0);
                $days[$meter][$day] = ($days[$meter][$day] ?? 0.0) + (float) ($u['quantity'] ?? 0);
            }
            if (($continue = (string) ($page['continue'] ?? '')) === '') {
                break;
            }
        }
        return [self::rows($totals), $this->chart($days)];
    }

    /**
     * @param array<string,float> $totals
     * @return array<int,array<string,string>>
     */
    private static function rows(array $totals): array
    {
        $out = [];
        foreach (Metrics::METERS as $meter => [$name, $words, $unit]) {
            if (($totals[$meter] ?? 0.0) > 0) {
                $out[] = ['name' => Lang::text($name, $words), 'quantity' => self::number($totals[$meter] / $unit)];
            }
        }
        return $out;
    }

    /**
     * Returns the GPU hours of all tiers by day; vCPU hours if no GPU was used.
     *
     * @param array<string,array<int,float>> $days by meter
     * @return array<string,mixed>
     */
    private function chart(array $days): array
    {
        $last = (int) gmdate('j', $this->now);
        foreach ([['gpu_hours_by_day', ['gpu-share-seconds', 'gpu-nanoseconds', 'gpu-premium-nanoseconds', 'gpu-basic-nanoseconds']], ['vcpu_hours_by_day', ['vcpu-seconds']]] as [$title, $meters]) {
            $values = [];
            for ($day = 1; $day <= $last; $day++) {
                $values[$day] = 0.0;
                foreach ($meters as $m) {
                    $values[$day] += ($days[$m][$day] ?? 0.0) / Metrics::METERS[$m][2];
                }
            }
            if (array_sum($values) > 0) {
                return Chart::of($values, Lang::text($title));
            }
        }
        return Chart::of([], '');
    }

    /** @return array<string,mixed> the costs of the month so far, the largest first, before taxes */
    private function costs(): array
    {
        $page = $this->get('Costs', '/v1/costs', ['from' => gmdate('Y-m-01\T00:00:00\Z', $this->now), 'to' => gmdate('Y-m-d\TH:i:s\Z', $this->now + 1),
            'by' => 'resource', 'top' => (string) self::MOST_COSTS]);
        $rows = [];
        foreach ($page['items'] ?? [] as $c) {
            if ((int) $c['amountMicros'] !== 0) {
                $rows[] = ['name' => (string) (($c['name'] ?? '') ?: ($c['key'] ?? '') ?: Lang::text('others')), 'amount' => self::amount((int) $c['amountMicros'])];
            }
        }
        return ['rows' => $rows, 'currency' => (string) ($page['currency'] ?? ''), 'total' => self::amount((int) ($page['totalMicros'] ?? 0) - (int) ($page['taxMicros'] ?? 0))];
    }

    private static function amount(int $micros): string
    {
        return number_format($micros / 1e6, 2, '.', '');
    }

    private static function number(float $n): string
    {
        return rtrim(rtrim(number_format($n, $n < 10 ? 3 : 1, '.', ''), '0'), '.') ?: '0';
    }

    /**
     * @param array<string,string> $query
     * @return array<string,mixed>
     */
    private function get(string $action, string $path, array $query): array
    {
        return $this->client->call($action, 'GET', $path . '?' . http_build_query(['organization' => $this->organization] + $query), null, self::SECONDS);
    }
}
