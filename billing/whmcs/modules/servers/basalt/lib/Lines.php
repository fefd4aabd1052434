<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/**
 * One invoice line for each machine: what a month that has ended costs by Basalt's
 * price book, before taxes, which are WHMCS's. It needs no metrics: it is read when
 * the month is over, so that nothing of it is missed, also of services that have ended.
 */
final class Lines
{
    /** Records come late: a month is read so long after its end. */
    private const SETTLED = 6 * 3600;

    /** @return array{int,int,string} the last month that is over, in WHMCS's own time zone: begin, end, name */
    public static function month(int $now): array
    {
        $zone = new \DateTimeZone(date_default_timezone_get());
        $end = (new \DateTimeImmutable('@' . ($now - self::SETTLED)))->setTimezone($zone)->modify('first day of this month midnight');
        $begin = $end->modify('first day of last month midnight');
        return [$begin->getTimestamp(), $end->getTimestamp(), $begin->format('Y-m')];
    }

    /**
     * The lines of a month, each with a description that tells it from all others: what is
     * made again is known by it. Amounts are in hundredths, and together what all costs.
     *
     * @param array<int,array<string,mixed>> $costs of resources
     * @return array<int,array{description:string,cents:int}>
     */
    public static function of(string $username, string $month, string $type, string $machine, array $costs, int $otherMicros): array
    {
        $micros = [];
        foreach ($costs as $c) {
            $key = (string) ($c['key'] ?? '');
            $words = match (true) {
                $type === 'machine' => $machine,
                str_starts_with($key, 'ins-') => trim((string) ($c['name'] ?? '')) . " ($key)",
                default => '',
            };
            $micros[$words] = ($micros[$words] ?? 0) + (int) ($c['amountMicros'] ?? 0);
        }
        $rest = $type === 'machine' ? $machine : '';
        $micros[$rest] = ($micros[$rest] ?? 0) + $otherMicros;
        $out = [];
        $sum = $charged = 0;
        foreach ($micros as $words => $amount) {
            $sum += $amount;
            $cents = intdiv($sum + 5000, 10000) - $charged;
            $charged += $cents;
            if ($cents > 0) {
                $out[] = ['description' => sprintf('%s, %s [%s]', $words !== '' ? $words : Lang::text('line_rest'), $month, $username), 'cents' => $cents];
            }
        }
        return $out;
    }
}
