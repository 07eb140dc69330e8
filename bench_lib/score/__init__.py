"""From replies to numbers: parse, gate, judge, aggregate; intervals and paired comparison."""
