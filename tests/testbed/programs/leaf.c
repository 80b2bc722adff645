/* A function that calls none, two calls deep: on Arm its return address is in a register alone. */
static volatile unsigned long sink;

__attribute__((noipa)) unsigned long leaf(unsigned long n) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++) sum += (i * i) ^ sum;
    return sum;
}

__attribute__((noipa)) unsigned long middle(unsigned long n) {
    unsigned long sum = 0;
    for (int i = 0; i < 10; i++) sum += leaf(n + sum % 2);
    return sum + 1;
}

__attribute__((noipa)) unsigned long outer(unsigned long n) {
    unsigned long sum = 0;
    for (int i = 0; i < 10; i++) sum += middle(n + sum % 2);
    return sum + 2;
}

int main(void) {
    sink = outer(1000000);
    return 0;
}
