<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/** Bars by day, as numbers that the template draws as SVG, without scripts or external resources. Pure. */
final class Chart
{
    private const WIDTH = 620;
    private const HEIGHT = 120;
    private const GAP = 2;

    /**
     * @param array<int,float> $values by day of the month
     * @return array{title:string,width:int,height:int,most:string,bars:array<int,array<string,string>>}
     */
    public static function of(array $values, string $title): array
    {
        $most = $values === [] ? 0.0 : max($values);
        $chart = ['title' => $title, 'width' => self::WIDTH, 'height' => self::HEIGHT, 'most' => self::number($most), 'bars' => []];
        if (!($most > 0)) {
            return $chart;
        }
        $step = self::WIDTH / 31;
        foreach ($values as $day => $value) {
            $height = max(0.0, $value) / $most * self::HEIGHT;
            $chart['bars'][] = ['x' => self::number(($day - 1) * $step), 'y' => self::number(self::HEIGHT - $height), 'width' => self::number($step - self::GAP),
                'height' => self::number($height), 'day' => (string) $day, 'value' => self::number($value)];
        }
        return $chart;
    }

    private static function number(float $n): string
    {
        return rtrim(rtrim(number_format($n, 2, '.', ''), '0'), '.') ?: '0';
    }
}
