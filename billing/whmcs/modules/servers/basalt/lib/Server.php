<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/**
 * The address of basaltd and the name of this WHMCS there, from the server's settings.
 * The first line of the access hash is the API key; the following lines may set
 * installation=NAME, portal=URL, ca=FILE and carry=HOURS.
 */
final class Server
{
    private const DEFAULT_PORT = 7480;

    /** Hours at a month's end that count in the next month; WHMCS must collect metrics once within them. */
    private const DEFAULT_CARRY = '24';
    private const MAX_CARRY = 72;

    public function __construct(
        public readonly string $url,
        public readonly string $key,
        public readonly string $installation,
        public readonly string $portal,
        public readonly string $ca,
        public readonly string $admin,
        public readonly int $carry,
    ) {
    }

    /** @param array<string,mixed> $params of a module function */
    public static function of(array $params): self
    {
        $lines = preg_split('/\R/', trim((string) ($params['serveraccesshash'] ?? ''))) ?: [''];
        $key = trim($lines[0]) !== '' ? trim($lines[0]) : trim((string) ($params['serverpassword'] ?? ''));
        $more = ['installation' => 'whmcs', 'portal' => '', 'ca' => '', 'carry' => self::DEFAULT_CARRY];
        foreach (array_slice($lines, 1) as $line) {
            [$name, $value] = array_map('trim', explode('=', $line, 2)) + [1 => ''];
            if (trim($line) === '') {
                continue;
            }
            if (!array_key_exists($name, $more)) {
                throw new ApiError("The server's access hash has a line \"$name\": after the API key it takes installation=, portal=, ca= and carry=.", 'settings');
            }
            $more[$name] = $value;
        }
        if (!preg_match('/^[0-9]{1,2}$/', $more['carry']) || (int) $more['carry'] > self::MAX_CARRY) {
            throw new ApiError("The server's access hash has carry={$more['carry']}: it takes 0 to " . self::MAX_CARRY . ' hours.', 'settings');
        }
        $host = trim((string) ($params['serverhostname'] ?? '')) ?: trim((string) ($params['serverip'] ?? ''));
        if ($host === '' || $key === '') {
            throw new ApiError('The server has no hostname or no API key: set both under System Settings, Servers (the key as access hash).', 'settings');
        }
        $scheme = empty($params['serversecure']) ? 'http' : 'https';
        $port = (int) ($params['serverport'] ?? 0) ?: self::DEFAULT_PORT;
        $url = "$scheme://$host:$port";
        return new self($url, $key, $more['installation'], rtrim($more['portal'] ?: $url, '/'), $more['ca'], trim((string) ($params['serverusername'] ?? '')), (int) $more['carry']);
    }
}
