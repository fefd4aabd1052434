<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/** Converts the parameters of a WHMCS service to basaltd's document of the service. Pure. */
final class Order
{
    /** The module's settings of a product, in WHMCS's order, which must not change: configoption1 and so on. */
    public const OPTIONS = ['type', 'flavor', 'image', 'pool', 'vram', 'share', 'disk', 'quota', 'pricebook', 'costs', 'invoice'];

    /** Names of configurable options, which a client chooses and which take precedence over the product's. */
    private const CHOSEN = [
        'flavor' => ['flavor', 'size'], 'image' => ['image', 'operating system', 'os'], 'pool' => ['gpu pool', 'pool'],
        'vram' => ['vram', 'vram gib'], 'share' => ['gpu share', 'share'], 'disk' => ['disk', 'disk gib'], 'quota' => ['quota'],
    ];

    private const GIB = 1 << 30;

    /** Quotas in the form that people write: name, and how many of basaltd's units one is. */
    private const QUOTAS = [
        'instances' => ['instances', 1], 'vcpus' => ['vcpus', 1], 'memorygib' => ['memoryBytes', self::GIB], 'vramgib' => ['vramBytes', self::GIB],
        'gpushare' => ['gpuSharePercent', 1], 'diskgib' => ['volumeBytes', self::GIB], 'floatingips' => ['floatingIPs', 1],
    ];

    /** @param array<string,mixed> $params */
    public static function name(array $params): string
    {
        return Server::of($params)->installation . ':' . (int) ($params['serviceid'] ?? 0);
    }

    /** Returns the service's user name in WHMCS, which also identifies it in usage queries. */
    public static function username(int $service): string
    {
        return "basalt$service";
    }

    public static function serviceOf(string $username): int
    {
        return preg_match('/^basalt([0-9]{1,15})$/', $username, $m) ? (int) $m[1] : 0;
    }

    /**
     * @param array<string,mixed> $params
     * @return array<string,mixed>
     */
    public static function of(array $params): array
    {
        $o = self::options($params);
        $client = (array) ($params['clientsdetails'] ?? []);
        $spec = [
            'type' => $o['type'] === 'account' ? 'account' : 'machine',
            'email' => (string) ($client['email'] ?? ''),
            'displayName' => self::line(trim(($client['companyname'] ?? '') ?: (($client['firstname'] ?? '') . ' ' . ($client['lastname'] ?? '')))),
        ];
        if ($o['pricebook'] !== '') {
            $spec['priceBook'] = $o['pricebook'];
        }
        $quota = self::quota($o['quota']);
        if ($quota !== []) {
            $spec['quota'] = $quota;
        }
        if ($spec['type'] === 'machine') {
            $spec['machine'] = self::machine($o, $params);
        }
        return ['kind' => 'Service', 'meta' => ['name' => self::name($params)], 'spec' => $spec];
    }

    /**
     * @param array<string,string> $o
     * @param array<string,mixed> $params
     * @return array<string,mixed>
     */
    private static function machine(array $o, array $params): array
    {
        $m = ['flavor' => $o['flavor'], 'image' => $o['image']];
        $vram = self::number($o['vram'], 'VRAM');
        if ($vram > 0) {
            // Whole MiB, as basaltd requires.
            $m['vgpu'] = ['vramBytes' => ((int) round($vram * 1024)) << 20];
            $share = (int) self::number($o['share'], 'GPU share');
            if ($share > 0) {
                $m['vgpu']['sharePercent'] = $share;
            }
            if ($o['pool'] !== '') {
                $m['vgpu']['pool'] = $o['pool'];
            }
        }
        $disk = self::number($o['disk'], 'Disk');
        if ($disk > 0) {
            $m['rootBytes'] = (int) ($disk * self::GIB);
        }
        $keys = preg_split('/\R/', trim((string) (self::byName((array) ($params['customfields'] ?? []), ['ssh key', 'ssh keys']) ?? ''))) ?: [];
        $keys = array_values(array_filter(array_map('trim', $keys), static fn (string $k): bool => $k !== ''));
        if ($keys !== []) {
            $m['sshKeys'] = $keys;
        }
        return $m;
    }

    /**
     * @param array<string,mixed> $params
     * @return array<string,string>
     */
    public static function options(array $params): array
    {
        $o = [];
        foreach (self::OPTIONS as $i => $name) {
            $o[$name] = trim((string) ($params['configoption' . ($i + 1)] ?? ''));
            $chosen = isset(self::CHOSEN[$name]) ? self::byName((array) ($params['configoptions'] ?? []), self::CHOSEN[$name]) : null;
            if ($chosen !== null && trim((string) $chosen) !== '') {
                $o[$name] = trim((string) $chosen);
            }
        }
        $own = Properties::get($params, Properties::QUOTA);
        if ($own !== '') {
            $o['quota'] = $own;
        }
        return $o;
    }

    /**
     * @param array<mixed> $fields
     * @param array<int,string> $names
     */
    private static function byName(array $fields, array $names): mixed
    {
        foreach ($fields as $name => $value) {
            // WHMCS allows "value|displayed text" and "name|displayed text".
            if (in_array(strtolower(trim(explode('|', (string) $name)[0])), $names, true)) {
                return is_string($value) ? explode('|', $value)[0] : $value;
            }
        }
        return null;
    }

    /**
     * Converts "vcpus=8, memoryGiB=32" to basaltd's form.
     *
     * @return array<string,int>
     */
    public static function quota(string $text): array
    {
        $out = [];
        foreach (preg_split('/[,;\s]+/', trim($text)) ?: [] as $part) {
            if ($part === '') {
                continue;
            }
            [$name, $value] = explode('=', $part, 2) + [1 => ''];
            $known = self::QUOTAS[strtolower($name)] ?? null;
            if ($known === null || !preg_match('/^[0-9]{1,9}$/', $value)) {
                throw new ApiError("The quota \"$part\" is none: write as vcpus=8, memoryGiB=32, vramGiB=16, diskGiB=200, instances=4, gpuShare=100, floatingIPs=1.", 'settings');
            }
            $out[$known[0]] = (int) $value * $known[1];
        }
        return $out;
    }

    private static function number(string $text, string $what): float
    {
        if ($text === '') {
            return 0;
        }
        if (!preg_match('/^[0-9]{1,7}(\.[0-9]{1,6})?$/', $text)) {
            throw new ApiError("$what is \"$text\": it has to be a number.", 'settings');
        }
        return (float) $text;
    }

    /** Returns one line without control characters, as basaltd requires. */
    private static function line(string $s): string
    {
        $s = (string) preg_replace('/[\x00-\x1f\x7f]+/', ' ', html_entity_decode($s, ENT_QUOTES | ENT_HTML5));
        return mb_strcut($s, 0, 250);
    }
}
