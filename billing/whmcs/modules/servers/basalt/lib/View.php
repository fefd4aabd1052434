<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/** Shows services. Untrusted text is escaped where it becomes HTML: here, and in the templates. */
final class View
{
    public static function html(string $s): string
    {
        return htmlspecialchars($s, ENT_QUOTES | ENT_SUBSTITUTE | ENT_HTML5, 'UTF-8');
    }

    /**
     * @param array<string,mixed> $service
     * @return array<string,string>
     */
    public static function ip(array $service): array
    {
        $first = (string) ($service['status']['addresses'][0] ?? '');
        return $first === '' ? [] : ['Dedicated IP' => $first];
    }

    /**
     * @param array<string,mixed> $s
     * @return array<string,mixed>
     */
    public static function account(array $s, string $username): array
    {
        return [
            'email' => (string) ($s['spec']['email'] ?? ''),
            'username' => $username,
            'domain' => '',
            'uniqueIdentifier' => $username,
            'product' => (string) ($s['spec']['type'] ?? ''),
            'primaryip' => (string) ($s['status']['addresses'][0] ?? ''),
            'created' => date('Y-m-d H:i:s', strtotime((string) ($s['meta']['createdAt'] ?? 'now')) ?: time()),
            'status' => ($s['status']['phase'] ?? '') === 'Suspended' ? 'SUSPENDED' : 'ACTIVE',
        ];
    }

    /**
     * @param array<string,mixed> $s
     * @return array<string,mixed> plain text, which the template escapes
     */
    public static function client(array $s): array
    {
        $vgpu = $s['spec']['machine']['vgpu'] ?? null;
        return [
            'type' => (string) ($s['spec']['type'] ?? ''),
            'phase' => Lang::text('phase_' . ($s['status']['phase'] ?? ''), (string) ($s['status']['phase'] ?? '')),
            'reason' => (string) ($s['status']['reason'] ?? ''),
            'lastError' => (string) ($s['status']['lastError'] ?? ''),
            'pending' => (string) ($s['status']['pending'] ?? ''),
            'addresses' => array_map('strval', (array) ($s['status']['addresses'] ?? [])),
            'name' => (string) ($s['spec']['machine']['name'] ?? ''),
            'vram' => is_array($vgpu) ? round(($vgpu['vramBytes'] ?? 0) / 1073741824, 2) . ' GiB' : '',
            'email' => (string) ($s['spec']['email'] ?? ''),
            'customer' => (string) ($s['spec']['displayName'] ?? ''),
        ];
    }

    /**
     * @param array<string,mixed> $s
     * @return array<string,string> HTML by label
     */
    public static function admin(string $problem, array $s, string $portal): array
    {
        if ($problem !== '') {
            return ['Basalt' => '<span class="label label-danger">' . self::html($problem) . '</span>'];
        }
        $c = self::client($s);
        $rows = ['Basalt' => self::html($c['phase'])];
        foreach (['reason' => $c['reason'], 'last_error' => $c['lastError'], 'pending' => $c['pending'], 'addresses' => implode(', ', $c['addresses']),
            'gpu_memory' => $c['vram'], 'organization' => (string) ($s['spec']['organization'] ?? ''), 'node' => (string) ($s['status']['node'] ?? '')] as $key => $value) {
            if ($value !== '') {
                $rows[Lang::text($key)] = self::html($value);
            }
        }
        $console = self::console($portal, $s);
        if ($console !== $portal) {
            $rows[Lang::text('console')] = '<a href="' . self::html($console) . '" target="_blank" rel="noopener noreferrer">' . self::html(Lang::text('console')) . '</a>';
        }
        return $rows;
    }

    /** @param array<string,mixed> $s */
    public static function console(string $portal, array $s): string
    {
        $instance = (string) ($s['spec']['instance'] ?? '');
        return $instance === '' ? $portal : $portal . '/#/instances/' . rawurlencode($instance) . '/console';
    }
}
